"""Training: a forward workload with its backward products, optimizer, and what is kept."""
