"""What an application declares (jobs, handlers, middleware, upgrades, providers, pools), and the catalog it becomes."""
