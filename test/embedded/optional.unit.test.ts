import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { ConfigError } from '../../sidecar/core/errors.ts'
import { loadOptional } from '../../sidecar/embedded/optional.ts'

const require = createRequire(import.meta.url)

test('a dependency that is not installed is a fault of the settings that names both ways out', async () => {
  const loading = loadOptional('not-installed', 'COUCHDB_URL', () => require.resolve('not-installed'))
  await expect(loading).rejects.toThrow(ConfigError)
  await expect(loading).rejects.toThrow('npm install not-installed, or set COUCHDB_URL')
})

test('a dependency that fails for another reason fails with that reason', async () => {
  const broken = new Error('broken')
  await expect(loadOptional('broken', 'SMTP_URL', () => Promise.reject(broken))).rejects.toBe(broken)
})
