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
  const program = typescript.createProgram([file, `${folder}couchdb.d.ts`], options, host)
  const source = program.getSourceFile(file)
  return program
    .getSemanticDiagnostics(source)
    .map(({ messageText }) => typescript.flattenDiagnosticMessageText(messageText, ' '))
}

test('a name or a method that CouchDB lacks is a type error already where it is written', () => {
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
