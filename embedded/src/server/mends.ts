/** Mends faults in the source text of PouchDB's server when Node loads it. `main.ts` lists the faults. */
import Module from 'node:module'

/** Text in a file of PouchDB's packages, and its replacement. */
const MENDS: readonly (readonly [file: RegExp, from: string, to: string])[] = [
  [
    /[\\/]pouchdb-validation[\\/]lib[\\/]index\.js$/,
    'newDoc._revisions = (oldDoc || {})._revisions;',
    'newDoc = Object.assign({}, newDoc, { _revisions: (oldDoc || {})._revisions });',
  ],
  [
    /[\\/]pouchdb-validation[\\/]lib[\\/]index\.js$/,
    `return db.allDocs({
    startkey: "_design/",
    endkey: "_design0",
    include_docs: true
  }).then(parseValidationFunctions);`,
    `return db.allDocs({ startkey: '_design/', endkey: '_design0' }).then(function (listed) {
      var revs = JSON.stringify(listed.rows.map(function (row) { return [row.id, row.value.rev] }))
      if (db.validating && db.validating.revs === revs) return db.validating.functions
      return db.allDocs({ startkey: '_design/', endkey: '_design0', include_docs: true }).then(function (read) {
        db.validating = { revs: revs, functions: parseValidationFunctions(read) }
        return db.validating.functions
      })
    })`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]utils\.js$/,
    'getOrCreateDB(req.PouchDB, dbName).then(function (db) {',
    `getOrCreateDB(req.PouchDB, dbName, true).then(function (db) {
       if (!db) return exports.sendJSON(res, 404, { error: 'not_found', reason: 'no_db_file' })`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]create-or-delete-dbs\.js$/,
    `function getOrCreateDB(PouchDB, dbName) {`,
    `function getOrCreateDB(PouchDB, dbName, ifThere) {`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]create-or-delete-dbs\.js$/,
    `db = new PouchDB(dbName);
    map.set(dbName, db);
    return db;`,
    `return Promise.resolve(ifThere ? PouchDB.allDbs() : [dbName]).then(function (dbs) {
      if (dbs.indexOf(dbName) === -1) return
      db = new PouchDB(dbName)
      map.set(dbName, db)
      return db
    })`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]utils\.js$/,
    `if (err) {
      return next(err);
    }
    req.rawBody = string;`,
    `if (err) return exports.sendJSON(res, 400, { error: 'bad_request', reason: 'The body is not whole.' })
    req.rawBody = string;`,
  ],
  [
    /[\\/]pouchdb-adapter-leveldb-core[\\/]lib[\\/]index\.js$/,
    '  function runReadOperation(firstTask) {',
    `  function callBack(callback, args) {
    try {
      callback.apply(null, args);
    } catch (thrown) {
      process.nextTick(function () { throw thrown });
    }
  }
  function runReadOperation(firstTask) {`,
  ],
  [
    /[\\/]pouchdb-adapter-leveldb-core[\\/]lib[\\/]index\.js$/,
    `callback.apply(null, cbArgs);
        if (++numDone`,
    `callBack(callback, cbArgs);
        if (++numDone`,
  ],
  [
    /[\\/]pouchdb-adapter-leveldb-core[\\/]lib[\\/]index\.js$/,
    `callback.apply(null, cbArgs);
      pouchdbUtils.nextTick`,
    `callBack(callback, cbArgs);
      pouchdbUtils.nextTick`,
  ],
  [
    /[\\/]pouchdb-mapreduce[\\/]lib[\\/]index\.js$/,
    `function evalFunctionInVm(func, emit) {
  return function (arg1, arg2, arg3) {
    var code =`,
    `var runs = new Map();
function runOf(code) {
  if (!runs.has(code)) {
    if (runs.size >= 100) runs.clear();
    runs.set(code, vm.runInNewContext(code));
  }
  return runs.get(code);
}
function evalFunctionInVm(func, emit) {
    var code =`,
  ],
  [
    /[\\/]pouchdb-mapreduce[\\/]lib[\\/]index\.js$/,
    `      'var __result__ = (' +
      func.replace(/;\\s*$/, '') + ')' + '(' +
      JSON.stringify(arg1) + ',' +
      JSON.stringify(arg2) + ',' +
      JSON.stringify(arg3) + ');' +
      'return {result: __result__, emitteds: __emitteds__};' +
      '})()';

    var output = vm.runInNewContext(code);`,
    `      'var __parse__ = function (text) { return text === undefined ? text : JSON.parse(text); };' +
      'var __function__ = (' + func.replace(/;\\s*$/, '') + ');' +
      'return function (arg1, arg2, arg3) {' +
      '__emitteds__ = [];' +
      'var __result__ = __function__(__parse__(arg1), __parse__(arg2), __parse__(arg3));' +
      'return {result: __result__, emitteds: __emitteds__};' +
      '};})()';
  return function (arg1, arg2, arg3) {
    var output = runOf(code)(JSON.stringify(arg1), JSON.stringify(arg2), JSON.stringify(arg3));`,
  ],
  [
    /[\\/]pouchdb-errors[\\/]lib[\\/]index\.js$/,
    'this.stack = (new Error()).stack;',
    "this.stack = this.name + ': ' + (reason || this.reason);",
  ],
  [
    /[\\/]pouchdb-size[\\/]lib[\\/]index\.js$/,
    'exports.installSizeWrapper = function () {',
    'exports.installSizeWrapper = function () { return;',
  ],
]

interface Compiling {
  _compile: (this: unknown, source: string, path: string) => unknown
}

const { prototype } = Module as unknown as { readonly prototype: Compiling }
const compile = prototype._compile
prototype._compile = function mended(source, path) {
  const mends = MENDS.filter(([file]) => file.test(path))
  const text = mends.reduce((before, [, from, to]) => {
    if (!before.includes(from)) throw new Error(`${path}: expected ${from}, which is to be mended`)
    return before.replace(from, () => to)
  }, source)
  return compile.call(this, text, path)
}
