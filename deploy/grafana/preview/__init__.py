"""What every panel of a dashboard would say, without a Grafana: a page of plain HTML."""
