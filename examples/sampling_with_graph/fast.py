"""The same without a graph."""

import torch
from slow import main, sample

if __name__ == "__main__":
    main(torch.inference_mode()(sample))
