/**
 * `journal-fold/testing`: for those who write a store of their own. A store that fails as a script says, and tests of what a log asks of
 * a store.
 */
export {
  withFaults,
  withFaultsSync,
  type Fault,
  type FaultScript,
  type RecordedCall,
  type Recording,
  type StoreMethod
} from "./faults.js"
export { durableStoreTests, type StoreSubject, type StoreTest } from "./durable-store.js"
