"""What an application declares (jobs, handlers, tasks, providers, queues, pools), and the catalog it becomes."""
