/* What a queue has of cuDNN: queue->library[DMI_LIBRARY_CUDNN]. */
#ifndef DMI_DEVICE_CUDNN_H
#define DMI_DEVICE_CUDNN_H

typedef struct dmi_cudnn {
    void *handle;             /* cudnnHandle_t, bound to the stream */
    void *kept;               /* of the kernels that call it: what they have made for the handle */
    void (*free)(void *kept); /* before the handle ends; NULL: there is nothing */
} dmi_cudnn;

#endif
