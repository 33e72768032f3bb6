"""What a layer is called in a report: its path below the model, with the model's class where the path says nothing."""

from torch import nn

from uncork.capture.regions import Regions


class Net(nn.Module):
    """A model with a named part."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def names(*roots: nn.Module) -> list[str]:
    """Return the names of all modules of some models, called one after the other."""
    regions = Regions()
    for root in roots:
        regions.name(root)
    return [name for name, _ in regions.named()]


def test_a_path_that_begins_with_a_number_carries_the_class() -> None:
    """``2`` alone is no layer's name; the paths of other models are as their users write them."""
    assert names(nn.Sequential(nn.Flatten(), Net())) == [
        "Sequential", "Sequential.0", "Sequential.1", "Sequential.1.body", "Sequential.1.body.0", "Sequential.1.body.1",
    ]  # fmt: skip
    assert names(Net()) == ["Net", "body", "body.0", "body.1"]


def test_a_second_model_shares_no_name_with_the_first() -> None:
    """A generator and a discriminator, of one class or of two."""
    two = names(nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU()))
    assert two == ["Sequential", "Sequential.0", "Sequential_2", "Sequential_2.0"]
    assert names(Net(), nn.Sequential(nn.ReLU()))[-2:] == ["Sequential", "Sequential.0"]


def test_a_part_that_was_called_alone_is_named_within_its_model() -> None:
    """Called first by itself it has no path yet; the model's walk gives it one."""
    model = Net()
    assert sorted(names(model.body, model)) == ["Net", "body", "body.0", "body.1"]
