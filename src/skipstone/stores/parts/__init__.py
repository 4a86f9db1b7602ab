"""Parts of metadata: what a store keeps of some objects, and how parts are read as one."""
