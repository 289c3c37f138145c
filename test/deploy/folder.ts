import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { compileDdocs, type CompileOptions } from '../../sidecar/deploy/compile.ts'
import { DeployError } from '../../sidecar/deploy/deploy-errors.ts'

/** A folder with these files of design documents, by path; removed at the end of the test. */
export function ddocFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'ddocs-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return folder
}

/** The design document `app` of these files. */
export async function compileApp(files: Record<string, string>, options: Partial<CompileOptions> = {}): Promise<Doc> {
  const own = Object.fromEntries(Object.entries(files).map(([path, text]) => [`app/${path}`, text]))
  const [doc] = await compileDdocs({ folder: ddocFolder(own), ...options })
  return doc!
}

/** The faults of these files. */
export async function faultsOf(
  files: Record<string, string>,
  options?: Partial<CompileOptions>,
): Promise<readonly string[]> {
  const thrown: unknown = await compileApp(files, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(DeployError)
  expect((thrown as DeployError).code).toBe('ddocs_broken')
  return (thrown as DeployError).faults
}
