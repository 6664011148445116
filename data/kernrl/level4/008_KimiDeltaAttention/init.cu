// Delta rule with a decay per channel: one block per sample and head goes through the tokens.
#include <kernelblaster/kernels/delta_rule.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* q, void* k, void* v, void* rates, void* decays, int64_t batch,
                               int64_t length, int64_t heads, int64_t key_size, int64_t value_size, float epsilon) {
    Workspace scratch;
    delta_rule(out(output), scratch.take_float(batch * heads * key_size * value_size),
               DeltaInputs{in(q), in(k), in(v), in(rates), in(decays)},
               DeltaRule{batch, length, heads, key_size, value_size, epsilon}, key_size);
}
