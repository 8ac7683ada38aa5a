"""The engine: claims attempts, hands them to a backend, keeps their leases, settles their outcomes, stops in order.

It knows stores and backends by their protocols alone and never calls a handler.
"""
