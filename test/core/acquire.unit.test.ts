import { expect, test } from 'vitest'
import { withAcquired } from '../../sidecar/core/acquire.ts'

/** Parts that record their close; those whose name begins with `bad` fail to close. */
function createParts() {
  const closed: string[] = []
  const part = (name: string) => ({
    name,
    close() {
      closed.push(name)
      return name.startsWith('bad') ? Promise.reject(new Error(`${name} does not close`)) : Promise.resolve()
    },
  })
  return { closed, part }
}

test('acquired parts are closed in reverse order when the work is over', async () => {
  const { closed, part } = createParts()
  await withAcquired(async (acquire) => {
    expect(acquire(part('a')).name).toBe('a')
    acquire(part('b'))
    await Promise.resolve()
    expect(closed).toEqual([])
  })
  expect(closed).toEqual(['b', 'a'])
})

test('a part that fails to close does not keep others open, and the first error is thrown', async () => {
  const { closed, part } = createParts()
  const working = withAcquired((acquire) => {
    for (const name of ['a', 'bad', 'b', 'bad too']) acquire(part(name))
    return Promise.resolve()
  })
  await expect(working).rejects.toThrow('bad too does not close')
  expect(closed).toEqual(['bad too', 'b', 'bad', 'a'])
})

test('errors while closing do not hide an error of the work', async () => {
  const { closed, part } = createParts()
  const working = withAcquired((acquire) => {
    acquire(part('a'))
    acquire(part('bad'))
    return Promise.reject(new Error('the work failed'))
  })
  await expect(working).rejects.toThrow('the work failed')
  expect(closed).toEqual(['bad', 'a'])
})
