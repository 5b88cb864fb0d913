using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = ( services = [ (name = "main", worker = .main) ] );
const main :Workerd.Worker = (
  modules = [
    (name = "worker", esModule = embed "out/worker.mjs"),
    (name = "journal_fold_bg.wasm", wasm = embed "out/journal_fold_bg.wasm") ],
  compatibilityDate = "2025-09-01",
);
