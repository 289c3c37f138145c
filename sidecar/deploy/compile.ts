import { basename, join, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Machines } from '../../ddocs/machine.ts'
import type { Doc } from '../couch/documents.ts'
import { bundleModules, withEsbuild, type Bundle, type Target } from './bundle.ts'
import { DeployError, refuseBroken } from './deploy-errors.ts'
import { toExpression } from './dialect.ts'
import { finishDdoc } from './keep-machines.ts'
import { fieldPath, readLayout, type DdocSources } from './layout.ts'
import { allSamples, samplesFrom } from './samples.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { inWords, tryFunctions, type TriedFunction } from './trial.ts'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import compile from 'couchdb-compile'

/** Kinds of databases for which the sidecar has design documents. */
export type DatabaseKind =
  | 'control'
  /** The control database of a user. */
  | 'user'
  | 'channel'
  /** Any other database that the sidecar follows. */
  | 'docstate'

export const ddocsFolder = (kind: DatabaseKind): string =>
  fileURLToPath(new URL(`../../ddocs/${kind}`, import.meta.url))

export interface CompileOptions {
  /** Folder for one kind of database, with one subfolder for each design document. */
  readonly folder: string
  /** Replaces the field `machines` of the folder's design document `docstate`. */
  readonly machines?: Machines | undefined
  /** Default `es2017`. */
  readonly target?: Target | undefined
}

/**
 * Compiles the design documents of a folder for an empty database. They have no `_rev`.
 *
 * @throws DeployError `ddocs_broken` with all faults
 */
export const compileDdocs = async (options: CompileOptions): Promise<Doc[]> =>
  (await compileFolder(options)).map((compiled) => finishDdoc(compiled, undefined).ddoc)

/**
 * Compiles the design documents of a folder, for any database. It bundles each module into the form that all engines
 * accept, assembles the couchapp layout, and tries functions on samples. `finishDdoc` adapts the result to one
 * database. Throws like `compileDdocs`.
 */
export async function compileFolder({ folder, machines, target = 'es2017' }: CompileOptions): Promise<Doc[]> {
  const layout = await readLayout(folder)
  refuseBroken(layout.ddocs.flatMap(doubleFaults))
  const sources = layout.ddocs.flatMap(({ sources }) => sources)
  const files = sources.flatMap(({ kind, file }) => (kind === 'module' ? [file] : []))
  const sandbox = createSandbox()
  const modules = await evaluateModules([...files, ...layout.samples], target, sandbox)
  const samples = allSamples(layout.samples.flatMap((file) => samplesFrom(basename(file), modules.get(file)!.value)))

  const docs: Doc[] = []
  const faults: string[] = []
  for (const { name, sources } of layout.ddocs) {
    const doc = await assemble(
      name,
      sources.map((source) => contentOf(source, modules.get(source.file))),
    )
    const ddoc = machines && name === 'docstate' ? { ...doc, machines } : doc
    const functions = sources.flatMap(({ path, file }): TriedFunction[] => {
      const module = modules.get(file)
      return module && isFunction(module) ? [{ path: fieldPath(path), file: module.file, fn: module.value }] : []
    })
    faults.push(...(await tryFunctions({ sandbox, ddoc, functions, samples })))
    docs.push(ddoc)
  }
  refuseBroken(faults)
  return docs
}

/** Faults of files that make the same field: it would be unclear which one wins. */
function doubleFaults({ name, sources }: DdocSources): string[] {
  const files = new Map<string, string>()
  return sources.flatMap(({ path }) => {
    const field = path.startsWith('_attachments/') ? path : fieldPath(path)
    const other = files.get(field)
    files.set(field, path)
    return other === undefined ? [] : [`${join(name, path)}: ${other} defines the same field; keep one of them`]
  })
}

/** A module's default export: its expression, and the value of that expression. */
interface Evaluated {
  readonly file: string
  readonly expression: string
  readonly value: unknown
}

/** Evaluates modules; the keys of the map are their files. Throws `DeployError` with the faults of all modules. */
async function evaluateModules(
  files: readonly string[],
  target: Target,
  sandbox: Sandbox,
): Promise<ReadonlyMap<string, Evaluated>> {
  const evaluated = new Map<string, Evaluated>()
  const faults: string[] = []
  await withEsbuild(async () => {
    for (const [index, bundle] of (await bundleModules(files, target)).entries()) {
      try {
        evaluated.set(files[index]!, await evaluate(bundle, target, sandbox))
      } catch (thrown) {
        if (!(thrown instanceof DeployError)) throw thrown
        faults.push(...thrown.faults)
      }
    }
  })
  refuseBroken(faults)
  return evaluated
}

async function evaluate(bundle: Bundle, target: Target, sandbox: Sandbox): Promise<Evaluated> {
  const expression = await toExpression(bundle, target)
  try {
    return { file: bundle.file, expression, value: sandbox.evaluate(expression, bundle.file) }
  } catch (cause) {
    throw new DeployError('ddocs_broken', [`${bundle.file}: threw when it was loaded: ${inWords(cause)}`], { cause })
  }
}

const isFunction = ({ value }: Evaluated) => typeof value === 'function'

/** Content of a file in the layout: text, JSON, or a copy of a file on disk. */
type Content =
  | { readonly kind: 'text'; readonly path: string; readonly text: string }
  | { readonly kind: 'json'; readonly path: string; readonly json: string }
  | { readonly kind: 'copy'; readonly path: string; readonly file: string }

function contentOf({ path, file }: { path: string; file: string }, module: Evaluated | undefined): Content {
  if (!module) return { kind: 'copy', path, file }
  if (isFunction(module)) return { kind: 'text', path: fieldPath(path), text: module.expression }
  return { kind: 'json', path: fieldPath(path), json: JSON.stringify(module.value) ?? 'null' }
}

/** Writes the files as a couchapp into a temporary folder, which `couchdb-compile` turns into the document. */
async function assemble(name: string, contents: readonly Content[]): Promise<Doc> {
  const temporary = await mkdtemp(join(tmpdir(), 'couchdb-sidecar-'))
  try {
    const folder = join(temporary, '_design', name)
    await mkdir(folder, { recursive: true })
    for (const content of contents) {
      const file = join(folder, content.path + extensionOf[content.kind])
      await mkdir(dirname(file), { recursive: true })
      if (content.kind === 'copy') await copyFile(content.file, file)
      else await writeFile(file, content.kind === 'text' ? content.text : content.json)
    }
    return await new Promise((resolve, reject) => {
      compile(folder, (error, doc) => (error ? reject(error) : resolve(doc)))
    })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

/** `couchdb-compile` removes the last extension; a copied file already has one. */
const extensionOf = { text: '.js', json: '.json', copy: '' } as const
