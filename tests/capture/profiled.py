"""Programs with a profiler of their own: one per word on the command line."""

import sys

import torch
from training import train


def own_profiler():
    """Train with a profiler of one's own around the loop, then without."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as mine:
        train(20)
    print("own events", len(mine.events()) > 500)
    train(20)


def other_doors():
    """Train; after so many steps begin a profiler of such a kind, then train on."""
    train(int(sys.argv[3]))
    if sys.argv[2] == "emit":
        with torch.autograd.profiler.emit_itt():
            train(4)
    elif sys.argv[2] == "bare":
        mine = torch.profiler._KinetoProfile(activities=[torch.profiler.ProfilerActivity.CPU])
        mine.start()
        train(4)
        mine.stop()
        print("own events", len(mine.events()))
    else:
        mine = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1))
        mine.start()
        for number in range(10):
            train(1)
            mine.step()
            if number == 1:
                mine.stop()
        print("stopped twice")
    train(24)


def own_cprofile():
    """Train under a cProfile of one's own."""
    import cProfile

    mine = cProfile.Profile()
    mine.runcall(train, 20)
    mine.create_stats()
    print("own functions", any(key[2] == "train" for key in mine.stats))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
