"""What every workload needs: runs measured by the kernel, the machine's state, honest figures."""
