/**
 * The couchapp layout: the folder of a database kind holds one folder for each design document. A path in that folder
 * is a field: `views/by_state/map.ts` is `views.by_state.map`.
 *
 * The document omits `*.d.ts`, `*.js.map`, and names that begin with `.` or `_`, except couchapp's own `_id` and
 * `_attachments`. So a file that is only imported has a name with `_`, or lies outside, like `ddocs/lib/`.
 */
import { readdir } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { DeployError } from './deploy-errors.ts'

export interface Source {
  /** Path within the design document: `views/by_state/map.ts`. */
  readonly path: string
  /** Path on disk. */
  readonly file: string
  /** A module is compiled to its default export; a plain file is copied unchanged. */
  readonly kind: 'module' | 'plain'
}

export interface DdocSources {
  /** Without `_design/`. */
  readonly name: string
  readonly sources: readonly Source[]
}

export interface Layout {
  readonly ddocs: readonly DdocSources[]
  /** Modules of the folder `_samples`: they export documents on which the functions are tried. */
  readonly samples: readonly string[]
}

/** Reads the folder of one kind of database. Throws `DeployError` if the folder is missing or empty. */
export async function readLayout(folder: string): Promise<Layout> {
  const ddocs: DdocSources[] = []
  for (const name of await foldersIn(folder)) {
    if (isPushed(name)) ddocs.push({ name, sources: await sourcesIn(join(folder, name)) })
  }
  if (ddocs.length === 0) {
    throw new DeployError('ddocs_broken', [`${folder}: expected a folder for each design document, found none`])
  }
  const samples = (await filesIn(join(folder, '_samples'))).filter((file) => kindOf(file) === 'module')
  return { ddocs, samples: samples.filter((file) => !isCompanion(file)) }
}

/** The field that a file becomes, such as `views/by_state/map`: the path without extension, as in `couchdb-compile`. */
export const fieldPath = (path: string): string => path.replace(/\.[^./]*$/, '')

const isPushed = (name: string): boolean => !/^[._]/.test(name) || name === '_attachments' || /^_id(\.|$)/.test(name)

/** Whether tsc writes such a file beside a module. */
const isCompanion = (file: string): boolean => /\.d\.ts$|\.js\.map$/.test(file)

const kindOf = (path: string): Source['kind'] =>
  /\.(ts|js|json)$/.test(path) && !path.startsWith('_attachments/') ? 'module' : 'plain'

async function sourcesIn(folder: string): Promise<Source[]> {
  const sources: Source[] = []
  for (const file of await filesIn(folder)) {
    const path = relative(folder, file).split(sep).join('/')
    const inDocument = path.startsWith('_attachments/') || path.split('/').every(isPushed)
    if (inDocument && !isCompanion(path)) sources.push({ path, file, kind: kindOf(path) })
  }
  return sources
}

async function foldersIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort()
  } catch (cause) {
    throw new DeployError('ddocs_broken', [`${folder}: expected a folder with design documents, found none`], { cause })
  }
}

/** All files below a folder, sorted; none if the folder is missing. */
async function filesIn(folder: string): Promise<string[]> {
  const parent = await readdir(join(folder, '..'))
  if (!parent.includes(basename(folder))) return []
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : [])).sort()
}
