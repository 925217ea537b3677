"""Operators of TensorFlow Lite by what they do; importing this fills the table of handlers."""

from mapper.workload.tflite_import.operators import arithmetic as arithmetic
from mapper.workload.tflite_import.operators import contraction as contraction
from mapper.workload.tflite_import.operators import control as control
from mapper.workload.tflite_import.operators import movement as movement
from mapper.workload.tflite_import.operators import recurrent as recurrent
from mapper.workload.tflite_import.operators import reduction as reduction
from mapper.workload.tflite_import.operators import signal as signal
from mapper.workload.tflite_import.operators import views as views
