"""The worker's side of the wall: runs under the project's interpreter and imports none of the driver's packages."""
