/** Loaded into the process of the product. Reports its bytes in use when its parent requests them. */
process.on('message', () => {
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  process.send(heapUsed + external)
})
