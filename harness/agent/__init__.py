"""The one host-side process per node that starts ranks and observes them."""
