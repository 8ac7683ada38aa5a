-- Wait until every act that was let in has ended, and let none in until this transaction ends: the gate reads these.
LOCK TABLE runwick.store, runwick.application, runwick.migration IN ACCESS EXCLUSIVE MODE;
