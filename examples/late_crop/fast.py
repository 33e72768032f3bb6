"""Each picture is cropped first, with the border that blurring needs, and the batch blurred at once."""

from slow import SEEN, train
from torch.nn.functional import avg_pool2d


def crop(picture, row, column):
    return picture[row - 2 : row + SEEN + 2, column - 2 : column + SEEN + 2]


def blur(batch):
    return avg_pool2d(batch, 5, stride=1)


if __name__ == "__main__":
    train(crop, blur)
