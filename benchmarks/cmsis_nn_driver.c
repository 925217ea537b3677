/* Layers of the sizes that benchmarks/cmsis_nn_cycles.py asks for, through CMSIS-NN. */
#include "arm_nnfunctions.h"
#include "arm_nn_types.h"

#define CHANNELS 1024
#define VALUES 65536
#define MULTIPLIER 0x50000000

static int8_t source[VALUES], weights[VALUES], target[VALUES];
static int16_t scratch[VALUES / 4];
static int32_t bias[CHANNELS], multipliers[CHANNELS], shifts[CHANNELS];

void prepare(void) {
  for (int channel = 0; channel < CHANNELS; channel++) {
    bias[channel] = channel;
    multipliers[channel] = MULTIPLIER + channel;
    shifts[channel] = -7;
  }
}

void convolution(int side, int channels, int outputs, int window) {
  cmsis_nn_context context = {scratch, sizeof scratch};
  cmsis_nn_conv_params parameters = {128, -128, {1, 1}, {window / 2, window / 2}, {1, 1}, {-128, 127}};
  cmsis_nn_per_channel_quant_params scale = {multipliers, shifts};
  cmsis_nn_dims read = {1, side, side, channels}, filter = {outputs, window, window, channels};
  cmsis_nn_dims biases = {1, 1, 1, outputs}, made = {1, side, side, outputs};
  if (window == 1)
    arm_convolve_1x1_s8_fast(&context, &parameters, &scale, &read, source, &filter, weights, &biases, bias, &made, target);
  else
    arm_convolve_s8(&context, &parameters, &scale, &read, source, &filter, weights, &biases, bias, &made, target);
}

#ifdef INTERFACE_OF_2020
void depthwise(int side, int channels, int window) {
  arm_depthwise_conv_s8_opt(source, side, side, channels, weights, channels, window, window, window / 2, window / 2, 1, 1,
                            bias, target, shifts, multipliers, side, side, -128, 128, -128, 127, 1, 1, scratch);
}

void dense(int channels, int outputs) {
  arm_fully_connected_s8(source, weights, channels, outputs, 1, 128, 0, MULTIPLIER, -7, -128, bias, target, -128, 127, scratch);
}
#else
void depthwise(int side, int channels, int window) {
  cmsis_nn_context context = {scratch, sizeof scratch};
  cmsis_nn_dw_conv_params parameters = {128, -128, 1, {1, 1}, {window / 2, window / 2}, {1, 1}, {-128, 127}};
  cmsis_nn_per_channel_quant_params scale = {multipliers, shifts};
  cmsis_nn_dims read = {1, side, side, channels}, filter = {1, window, window, channels};
  cmsis_nn_dims biases = {1, 1, 1, channels}, made = {1, side, side, channels};
  arm_depthwise_conv_wrapper_s8(&context, &parameters, &scale, &read, source, &filter, weights, &biases, bias, &made, target);
}

void dense(int channels, int outputs) {
  cmsis_nn_context context = {scratch, sizeof scratch};
  cmsis_nn_fc_params parameters = {128, 0, -128, {-128, 127}};
  cmsis_nn_per_tensor_quant_params scale = {MULTIPLIER, -7};
  cmsis_nn_dims read = {1, 1, 1, channels}, filter = {channels, 1, 1, outputs};
  cmsis_nn_dims biases = {1, 1, 1, outputs}, made = {1, 1, 1, outputs};
  arm_fully_connected_s8(&context, &parameters, &scale, &read, source, &filter, weights, &biases, bias, &made, target);
}
#endif

/* The library's own is not linked: word by word, as newlib's. */
void *memcpy(void *restrict into, const void *restrict from, size_t size) {
  char *at = into;
  const char *read = from;
  for (; size >= 4; size -= 4, at += 4, read += 4) *(int32_t *)at = *(const int32_t *)read;
  while (size--) *at++ = *read++;
  return into;
}

void *memset(void *into, int value, size_t size) {
  char *at = into;
  int32_t word = (value & 255) * 0x01010101;
  for (; size >= 4; size -= 4, at += 4) *(int32_t *)at = word;
  while (size--) *at++ = value;
  return into;
}
