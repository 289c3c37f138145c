/** Runs the work for each item, `atOnce` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  atOnce = 16,
): Promise<void> {
  const left = [...items]
  const worker = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
