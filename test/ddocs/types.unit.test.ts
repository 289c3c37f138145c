import typescript from 'typescript'
import { expect, test } from 'vitest'

const folder = new URL('../../ddocs/', import.meta.url).pathname

/** Type errors of a module in `ddocs/` with this text. */
function errorsOf(text: string): string[] {
  const { config } = typescript.readConfigFile(`${folder}tsconfig.json`, (path) => typescript.sys.readFile(path)) as {
    config: unknown
  }
  const { options } = typescript.parseJsonConfigFileContent(config, typescript.sys, folder)
  const file = `${folder}imagined.ts`
  const host = typescript.createCompilerHost(options)
  const readFile = host.getSourceFile.bind(host)
  host.getSourceFile = (path, version) =>
    path === file ? typescript.createSourceFile(path, text, version) : readFile(path, version)
  const program = typescript.createProgram([file, `${folder}couchdb.ts`], options, host)
  const source = program.getSourceFile(file)
  return program
    .getSemanticDiagnostics(source)
    .map(({ messageText }) => typescript.flattenDiagnosticMessageText(messageText, ' '))
}

test('a name or a method that CouchDB lacks is a type error in the source', () => {
  const errors = errorsOf(`
    export const a = (): void => console.log(process.pid)
    export const b = (): unknown => setTimeout(() => [1, [2]].flat(), Buffer.length)
    export const c = (doc: { _id: string }): void => emit(doc._id, sum([1]))`)
  expect(errors.map((error) => /'(\w+)'/.exec(error)![1])).toEqual([
    'console',
    'process',
    'setTimeout',
    'flat',
    'Buffer',
  ])
})

test('each kind of function has its type', () => {
  const errors = errorsOf(`
    import type { FilterFunction, MapFunction, ReduceFunction, UpdateFunction, ValidateDocUpdate } from './couchdb.ts'
    export const map: MapFunction = (doc) => emit([doc.type, doc._id], doc._attachments ? 1 : 0)
    export const reduce: ReduceFunction<number> = (keys, values, rereduce) => (rereduce || keys ? sum(values) : 0)
    export const filter: FilterFunction = (doc, req) => doc.owner === req.userCtx.name || req.query.all === 'true'
    export const update: UpdateFunction = (doc, { uuid, body }) => [doc ?? { _id: uuid, body }, 'done']
    export const validate: ValidateDocUpdate = (newDoc, oldDoc, { roles }, { admins }) => {
      if (oldDoc && newDoc.type !== oldDoc.type && roles !== admins?.roles) throw { forbidden: 'a type stays' }
    }
    export const careless: MapFunction = (doc) => emit(doc.name.length)
    export const wrong: FilterFunction = (doc) => doc._id`)
  expect(errors).toEqual([
    "'doc.name' is of type 'unknown'.",
    expect.stringContaining("Type 'string' is not assignable to type 'boolean'."),
  ])
})
