"""A kernel's name as people say it."""

from dataclasses import replace

import pytest

from tests.unit.reports import starved_report
from uncork.render.page_data import page_data
from uncork.render.tables import both_ends, cell
from uncork.rules.kernel_names import short

LONG = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3> >()"


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_nn_align1>(cutlass_80_simt_sgemm_nn_align1::Params)",
            "cutlass_80_simt_sgemm_nn_align1",
        ),
        (
            "void cudnn::ops::nchwToNhwcKernel<float, float, float, float, (cudnnDataType_t)2>(p<float>, f (*)(int))",
            "cudnn::ops::nchwToNhwcKernel<float>",
        ),
        (
            "_ZN5cudnn19engines_precompiled16nchwToNhwcKernelIfffLb0ELb1EEEvNS0_18nchw2nhwc_params_tIT1_EE",
            "cudnn::engines_precompiled::nchwToNhwcKernel",
        ),
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, "
                "at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 3> >(int, float)"
            ),
            "vectorized_elementwise_kernel<MulFunctor>",
        ),
        (
            (
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
                "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const>(int)>"
            ),
            "elementwise_kernel<direct_copy_kernel_cuda>",
        ),
        (
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<half, at::native::func_wrapper_t<"
                "half, at::native::sum_functor<c10::Half>::operator()(at::TensorIterator&)::{lambda()#1}>, int>>(x)"
            ),
            "reduce_kernel<sum_functor>",
        ),
        ("void (anonymous namespace)::softmax<c10::Half, c10::Half, float, 7, true>(int)", "softmax<Half, float>"),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(x)",
            "internal::gemvx::kernel<float>",
        ),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Generic"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("a<b", "a<b"),
        ("<img src=x>(y)", "<img src=x>(y)"),
        ("f<" * 2_000 + "int" + ">" * 2_000, "f<f>"),
        ("_Z4gemmPf", "gemm"),
        ("_ZNK9unusual", "_ZNK9unusual"),
        ("odd)", "odd)"),
    ],
)
def test_a_kernel_s_name_is_read_without_what_the_compiler_added(name: str, read: str):
    """What is left says what is done, in what; a mangled name is its parts after their lengths."""
    assert short(name) == read


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (45, "vectorized_elementwise_kern…<CUDAFunctor_add>"),
        (46, "vectorized_elementwise_kernel<CUDAFunctor_add>"),
        (24, "vector…<CUDAFunctor_add>"),
        (23, "vectorized_elementwise_kernel<CUDAFunctor_add>"),
    ],
)
def test_in_a_narrow_column_the_telling_argument_stays(width: int, shown: str):
    """46 characters, 17 of them from the angle on; six of the head at least, else the column cuts it where it ends."""
    assert both_ends("vectorized_elementwise_kernel<CUDAFunctor_add>", width) == shown
    assert both_ends("ampere_sgemm_128x64_tn", width) == "ampere_sgemm_128x64_tn"


def test_tables_say_the_short_name_and_keep_the_whole_one():
    """On the terminal the short one; the page has both; other tables' names are as they are, whatever they hold."""
    row = {"name": LONG, "calls_per_step": 1, "device_ns": 5}
    assert cell("kernels", row, "name") == "vectorized_elementwise_kernel<CUDAFunctor_add>"
    assert cell("functions", {"name": "<method 'a' of b>"}, "name") == "<method 'a' of b>"
    report = replace(starved_report(), tables={"kernels": [row], "operators": [{"name": "aten::add", "kernel": LONG}]})
    data = page_data(report)
    assert data["short_names"] == {LONG: "vectorized_elementwise_kernel<CUDAFunctor_add>"}
    assert [table["rows"][0][table["columns"].index("name")] for table in data["tables"]] == ["aten::add", LONG]
