import { expect } from 'vitest'
import type { Couch } from '../../sidecar/couch/client.ts'
import { deployDdocs, type DeployOptions } from '../../sidecar/deploy/deploy.ts'
import { DeployError } from '../../sidecar/deploy/deploy-errors.ts'

export const app = (limit: number) => ({
  'app/views/v/map.js': `export default function (doc) { if (doc.n > ${limit}) emit(doc.n) }`,
  'app/views/v/reduce.js': "export default '_sum'",
  'app/limit.json': String(limit),
})

export const deploy = (couch: Couch, database: string, folder: string, options: Partial<DeployOptions> = {}) =>
  deployDdocs({ couch, deployments: [{ database, templates: [{ folder }] }], ...options })

export const errorOf = async (deploying: Promise<unknown>): Promise<DeployError> => {
  const thrown: unknown = await deploying.catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(DeployError)
  return thrown as DeployError
}
