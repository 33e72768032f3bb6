"""Programs that run a model on several threads: one per word on the command line."""

import importlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

import uncork


def network():
    """Return a small model."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))


def train(steps, over=None, began=None, *, marks=False):
    """Train for so many steps, and on until an event is set; set another after the fifth."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    made = 0
    while made < steps or not (over is None or over.is_set()):
        optimizer.zero_grad()
        model(torch.ones(16, 64)).sum().backward()
        optimizer.step()
        if marks:
            uncork.step()
        made += 1
        if began is not None and made == 5:
            began.set()


def infer(calls, over=None, began=None):
    """Call a model so often, and on until an event is set; set another after the fifth."""
    model = network().eval()
    made = 0
    with torch.no_grad():
        while made < calls or not (over is None or over.is_set()):
            model(torch.ones(16, 64))
            made += 1
            if began is not None and made == 5:
                began.set()


def beside(work, main, *args, **options):
    """Do one thing on a thread, and another on this one while the thread does its own."""
    began, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, args=(20, over, began))
    thread.start()
    began.wait()
    main(*args, **options)
    over.set()
    thread.join()


def training_on_a_thread():
    """Train on a thread while the main one infers, which does so before and after."""
    infer(20)
    over = threading.Event()
    thread = threading.Thread(target=train, args=(300,))
    beats = threading.Thread(target=lambda: (thread.join(), over.set()))
    thread.start()
    beats.start()
    infer(20, over)
    beats.join()


def actors():
    """Infer on a thread, then train on the main one meanwhile."""
    beside(infer, train, 200)


def validation():
    """Train on the main thread; after five updates another thread infers beside it."""
    train(5)
    beside(infer, train, 200)


def pool():
    """Answer 600 requests on three threads, three at a time."""
    model = network().eval()
    together = threading.Barrier(3)

    def answer(_):
        with torch.no_grad():
            model(torch.ones(16, 64))
        together.wait()  # so that each thread takes its third

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(answer, range(600)))


def thread_per_request():
    """Answer 100 requests, each on a thread of its own."""
    model = network().eval()
    for _ in range(100):
        thread = threading.Thread(target=model, args=(torch.ones(16, 64),))
        thread.start()
        thread.join()


def short_then_long():
    """Train for five steps on a thread, then for 200 on another."""
    for steps in (5, 200):
        thread = threading.Thread(target=train, args=(steps,))
        thread.start()
        thread.join()


def waits():
    """Train for five steps on the main thread, which then waits for another that trains for two seconds."""
    train(5)
    over = threading.Event()
    thread = threading.Thread(target=train, args=(200, over))
    thread.start()
    time.sleep(2)
    over.set()
    thread.join()


def marked():
    """Train on a thread without a mark while the main one marks its steps."""
    beside(train, train, 500, marks=True)


def one_call_first():
    """Call a model once on a thread, then train on the main one."""
    thread = threading.Thread(target=infer, args=(1,))
    thread.start()
    thread.join()
    train(200)


def fault_beside():
    """Train while another thread infers, on which the recorder has a fault of its own once the training is traced."""
    threads = importlib.import_module("uncork.capture.threads")
    count, happened = threads.Threads._did, threading.Event()

    def broken(self, kind):
        if self._recorder.observer.traces():
            happened.set()
            raise RuntimeError("injected")
        return count(self, kind)

    threads.Threads._did = broken
    beside(infer, train, 200, happened)
    train(5)
    print(torch.autograd._profiler_enabled())


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
