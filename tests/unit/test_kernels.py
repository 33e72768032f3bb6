"""Kernel classes: names as PyTorch's libraries and other vendors write them."""

import numpy as np
import pytest

from uncork.kernels import BANDWIDTH, CLASSES, COMPUTE, kernel_class, kernel_classes
from uncork.testing import sketch

NAMES = {
    "conv": [
        "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>(int, int)",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_cudnn",
        "volta_scudnn_128x64_relu_interior_nn_v1",
        "miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f3x2_stride1",
        "void cask_cudnn::computeOffsetsKernel<false, false>(cask_cudnn::ComputeOffsetsParams)",
    ],
    "gemm": [
        "ampere_sgemm_128x64_nn",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align4>(Params)",
        "Cijk_Ailk_Bljk_BBS_BH_MT64x64x64_MI16x16x16x1_SN_1LDSB0",
        "void splitKreduce_kernel<float, float, float, float, true, true, false>(cublasSplitKParams<float>)",
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN",
    ],
    "attention": [
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>)",
    ],
    "layout": [
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(params)",
        "batched_transpose_32x16_half",
        "trans_TransData_5",
    ],
    "norm": [
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct, float const*)",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)",
        "triton_red_fused_native_layer_norm_backward_transpose_view_12",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "triton_poi_fused_gelu_view_9",
        "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)",
    ],
    "reduce": ["void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >"],
    "softmax": ["void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*)"],
    "copy": [
        "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)",
    ],
    "comm": [
        "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    ],
    "optimizer": ["void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float>"],
    "index": ["void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2>"],
    "other": ["pe_exe", ""],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_name_to_class(kind: str, name: str) -> None:
    """Each name of a real kernel gets the class that a person would give it."""
    assert kernel_class(name) == kind


def test_every_class_has_an_example_and_one_side() -> None:
    """The table above covers all classes, and no class counts both as arithmetic and as memory-bound."""
    assert set(NAMES) == set(CLASSES)
    assert not COMPUTE & BANDWIDTH
    assert COMPUTE | BANDWIDTH | {"comm", "other"} == set(CLASSES)


def test_rows_get_the_class_of_their_name() -> None:
    """The classes of rows follow the rows' names, in the rows' order."""
    (recording,) = sketch(
        """
        device NVIDIA A100-SXM4-80GB
        steps 2 x 10ms
          main 1ms..2ms aten::mm -> stream 7 2ms..3ms ampere_sgemm_128x64_nn
          main 3ms..4ms aten::relu -> stream 7 4ms..5ms triton_poi_fused_relu_0
        """
    )
    table = recording.events
    assert table is not None
    rows = np.flatnonzero(table.name_is("triton_poi_fused_relu_0") | table.name_is("ampere_sgemm_128x64_nn"))
    found = [CLASSES[code] for code in kernel_classes(table, rows[::-1])]
    assert sorted(found) == ["elementwise", "elementwise", "gemm", "gemm"]
    assert found == [kernel_class(name) for name in table.names(rows[::-1])]
