"""How the machine is used: cores, compiled code, TensorFlow, signals and standard streams."""
