/** A compiled module, as workerd imports it. */
declare module "*.wasm" {
  const module: WebAssembly.Module
  export default module
}
