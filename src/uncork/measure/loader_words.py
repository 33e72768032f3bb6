"""What a function does when it runs inside a loader, read from its file and name."""

import re

from uncork.frames import is_users

# The order decides where a name fits several. Files first: a library says more than a name. An archive's own Python
# takes it apart; what it reads from is called below it.
_FILES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("collate", re.compile(r"torch/utils/data/_utils/collate\.py")),
    (
        "augment",
        re.compile(
            r"torchvision/transforms|transformers/(image_transforms|audio_utils)|albumentations|imgaug|kornia|monai/transforms|scipy/ndimage|skimage"
            r"|PIL/Image(Filter|Ops|Enhance|Chops)|audiomentations"
        ),
    ),
    (
        "decode",
        re.compile(
            r"torchvision/io|PIL/\w*ImagePlugin|PIL/ImageFile|json/(decoder|__init__|scanner)|(^|/)(pickle|gzip|bz2|lzma|tarfile|zipfile)\.py"
            r"|zstandard|lz4|soundfile|librosa|torchaudio|audioread|decord|(^|/)av/|imageio|tifffile|pydicom|nibabel"
            r"|(^|/)csv\.py|pandas/io|transformers/tokenization|(^|/)(sentencepiece|tiktoken|nltk|spacy)/"
        ),
    ),
    (
        "read",
        re.compile(
            r"h5py|lmdb|boto3|botocore|s3fs|fsspec|gcsfs|urllib|http/client|(^|/)requests/|aiohttp|smart_open|zarr"
            r"|webdataset/(gopen|tariterators|cache)\.py|netCDF4|rasterio|pyarrow|numpy/lib/(npyio|_npyio_impl|format|_format_impl)|(^|/)(socket|ssl)\.py"
        ),
    ),
)
_BUILT_IN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("to_tensor", re.compile(r"\b(torch\.)?(tensor|as_tensor|FloatTensor|LongTensor|DoubleTensor)( of type|>)")),
    (
        "decode",
        re.compile(r"ImagingDecoder|\b(imdecode|decompress\w*|loads|scan_once)\b|\bencode\w*\b.*\btokenizers\."),
    ),
    (
        "augment",
        re.compile(
            r"\b(resize|rotate|transform2?|filter|crop|transpose|gaussian_blur|box_blur|convert_matrix)\b.*Imaging"
            r"|Imaging.*\b(resize|rotate|transform2?|filter|crop|transpose|gaussian_blur)\b"
            r"|\b(warpAffine|warpPerspective|GaussianBlur|cvtColor)\b|^aten::(_?upsample|flip|grid_sampl|rot90|roll)"
        ),
    ),
    (
        "read",
        re.compile(
            r"^<.*\b(open|open_code|read|read1|readinto\d?|readline|readlines|readall|pread|recv|recv_into|fromfile|scandir"
            r"|listdir|imread|sleep|poll|select|connect)\b"
        ),
    ),
)
_USER_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("collate", re.compile(r"collate|(^|_)pad_?(batch|sequence)")),
    ("decode", re.compile(r"decod|(^|_)pars(e|er)(_|$)|tokeni[sz]e|decompress")),
    (
        "augment",
        re.compile(
            r"augment|transform|(^|_)(flip|crop|rotate|resize|jitter|blur|noise|mixup|cutmix|warp|normali[sz]e|colou?r)(_|$)"
        ),
    ),
    ("read", re.compile(r"(^|_)(read|load|fetch|download)(_|$)")),
)

_DECODED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "text",
        re.compile(
            r"transformers/tokenization|(^|/)(tokenizers|sentencepiece|tiktoken|nltk|spacy)/|\btokenizers\."
            r"|tokeni[sz]e|encode_batch"
        ),
    ),
    (
        "pictures",
        re.compile(
            r"(^|/)(PIL|cv2|imageio|av|decord)/|torchvision/io|tifffile|pydicom|Imaging|imdecode|imread"
            r"|(^|_)(image|img|picture|jpe?g|png|video|frame)s?(_|$)"
        ),
    ),
)


_PARSES = re.compile(r"numpy/lib/_?npyio\w*\.py: (loadtxt|genfromtxt|fromregex|_read)$")
"""Text to numbers is work, unlike what else NumPy does with files; `_read` is how `loadtxt` goes about it."""


def stage_of(file: str, function: str) -> str:
    """Return what a function does in a loader, or empty where its name does not say.

    ``read`` is waiting for disk, network or time; ``decode augment collate to_tensor`` compute.

    Args:
        file: Its source file; empty or ``~`` for built-ins and operators.
        function: Its name.
    """
    if file and file != "~":
        folded = file.replace("\\", "/")
        if _PARSES.search(f"{folded}: {function}"):
            return "decode"
        for stage, pattern in _FILES:
            if pattern.search(folded):
                return stage
        patterns = _USER_NAMES if is_users(file) else ()
        function = function.casefold()
    else:
        patterns = _BUILT_IN
    return next((stage for stage, pattern in patterns if pattern.search(function)), "")


def decoded_as(file: str, function: str) -> str:
    """Return whether a function turns ``text`` or ``pictures`` into numbers, what else a loader unpacks as ``packed``.

    Empty where its name says nothing of that.

    Args:
        file: Its source file; empty or ``~`` for built-ins and operators.
        function: Its name.
    """
    folded = file.replace("\\", "/")
    for kind, pattern in _DECODED:
        # A user's folder may have any name.
        if pattern.search(function) or (not is_users(file) and pattern.search(folded)):
            return kind
    return "packed" if stage_of(file, function) == "decode" and not (file and is_users(file)) else ""
