// problem: level1/19
// does: kernels whose mangled names are thousands of characters long
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <type_traits>

namespace vectorised_elementwise_operations_with_compile_time_policies {
namespace implementation_details_that_nobody_should_have_to_look_at {

template <typename ThresholdPolicy, typename MemoryAccessPolicy, typename UnrollingPolicy, typename... RemainingCompileTimeOptions>
struct ElementwiseKernelConfigurationThatIsSpeltOutInFullForTheSakeOfReadability {
    static constexpr int kElementsPerThread = UnrollingPolicy::value;
};

template <int kElements>
struct UnrollingPolicyWithAConstantNumberOfElementsPerThread : std::integral_constant<int, kElements> {};

struct ThresholdPolicyThatReplacesNegativeValuesByZeroAndKeepsAllOthersAsTheyAre {
    static __device__ scalar_t apply(scalar_t value) { return to_float(value) < 0.0f ? from_float(0.0f) : value; }
};

struct MemoryAccessPolicyThatStridesOverTheGridInOrderToKeepAccessesCoalesced {};

template <typename Left, typename Right>
struct PairOfTagsWhoseOnlyPurposeIsToMakeTheNameOfTheInstantiationLonger {};

using OneTag = PairOfTagsWhoseOnlyPurposeIsToMakeTheNameOfTheInstantiationLonger<std::integral_constant<unsigned long long, 0xFFFFFFFFFFFFFFFFull>, std::true_type>;
using TwoTags = PairOfTagsWhoseOnlyPurposeIsToMakeTheNameOfTheInstantiationLonger<OneTag, std::integral_constant<char, 'a'>>;
using FourTags = PairOfTagsWhoseOnlyPurposeIsToMakeTheNameOfTheInstantiationLonger<TwoTags, PairOfTagsWhoseOnlyPurposeIsToMakeTheNameOfTheInstantiationLonger<OneTag, TwoTags>>;
template <int kDepth>
struct Deeper {
    using type = PairOfTagsWhoseOnlyPurposeIsToMakeTheNameOfTheInstantiationLonger<std::integral_constant<int, kDepth>,
                                                                                   typename Deeper<kDepth - 1>::type>;
};
template <>
struct Deeper<0> {
    using type = FourTags;
};

template <typename Configuration, typename ThresholdPolicy>
__global__ void elementwise_kernel_that_applies_a_threshold_policy_to_every_element_of_a_large_tensor(scalar_t* result,
                                                                                                   const scalar_t* operand,
                                                                                                   int64_t number_of_elements) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; element < number_of_elements; element += step) result[element] = ThresholdPolicy::apply(operand[element]);
}

}  // namespace implementation_details_that_nobody_should_have_to_look_at
}  // namespace vectorised_elementwise_operations_with_compile_time_policies

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    using namespace vectorised_elementwise_operations_with_compile_time_policies::implementation_details_that_nobody_should_have_to_look_at;
    using Threshold = ThresholdPolicyThatReplacesNegativeValuesByZeroAndKeepsAllOthersAsTheyAre;
    using Configuration = ElementwiseKernelConfigurationThatIsSpeltOutInFullForTheSakeOfReadability<
        Threshold, MemoryAccessPolicyThatStridesOverTheGridInOrderToKeepAccessesCoalesced,
        UnrollingPolicyWithAConstantNumberOfElementsPerThread<4>, FourTags, Deeper<24>::type>;
    const int64_t count = batch_size * dim;
    const int64_t per_block = 256 * Configuration::kElementsPerThread;
    const int64_t blocks = (count + per_block - 1) / per_block;
    elementwise_kernel_that_applies_a_threshold_policy_to_every_element_of_a_large_tensor<Configuration, Threshold>
        <<<unsigned(blocks < 65536 ? blocks : 65536), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
}
