"""The labelling page: label requests in the browser, on the calls of the vendor API."""
