/** As CouchDB orders leaves that are not deleted: it shows the last. */
export function compareRevs(a: string, b: string): number {
  const generations = parseInt(a) - parseInt(b)
  return generations !== 0 ? generations : a < b ? -1 : a > b ? 1 : 0
}
