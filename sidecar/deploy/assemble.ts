import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import compile from 'couchdb-compile'
import type { Doc } from '../couch/documents.ts'

/** What a file of the document holds: text as it is, JSON, or a copy of a file on disk. */
export type Content =
  | { readonly kind: 'text'; readonly path: string; readonly text: string }
  | { readonly kind: 'json'; readonly path: string; readonly json: string }
  | { readonly kind: 'copy'; readonly path: string; readonly file: string }

/** Lays the files out as a couchapp in a temporary folder and has `couchdb-compile` make the document of it. */
export async function assemble(name: string, contents: readonly Content[]): Promise<Doc> {
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

/** The last extension is cut off by `couchdb-compile`; a copied file brings its own. */
const extensionOf = { text: '.js', json: '.json', copy: '' } as const
