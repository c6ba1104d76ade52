import { gatherConfig } from "graphile-build";
import { entityPermissions, type Introspection, type PgProc, type PgType } from "graphile-build-pg/pg-introspection";
import { pgServiceOf } from "./gather-query.ts";
import { functionSignature, functionWithoutType, inputTypesOf, type OmittedObject } from "./omitted-objects.ts";
import { findTablesWithoutColumns } from "./tables-without-columns.ts";

declare global {
  namespace GraphileConfig {
    interface GatherHelpers {
      callableFunctions: Record<string, never>;
    }
  }
  namespace GraphileBuild {
    interface BuildInput {
      /** Tables and functions that clients may use and that the schema omits. */
      omittedObjects?: readonly OmittedObject[];
    }
  }
}

/** The pseudo-types that GraphQL can return. */
const SUPPORTED_PSEUDO_TYPES: ReadonlySet<string> = new Set(["void", "record"]);
/** `anyelement`, `anycompatiblearray`, …: resolved per call only. `any` and `internal` cannot be passed at all. */
const POLYMORPHIC_TYPE_NAME = /^any./;
const UNSUPPORTED_KINDS: Readonly<Record<string, { readonly object: string; readonly reason: string }>> = {
  a: { object: "aggregate", reason: "GraphQL calls no aggregates" },
  p: { object: "procedure", reason: "GraphQL calls no procedures" },
  w: { object: "function", reason: "GraphQL calls no window functions" },
};

export const CallableFunctionsPlugin: GraphileConfig.Plugin = {
  name: "CallableFunctionsPlugin",
  description:
    "Functions that clients may execute and GraphQL can call; of several with one name, the oldest and those renamed by a comment",
  gather: gatherConfig({
    namespace: "callableFunctions",
    helpers: {},
    initialState: (): CallableFunctionsState => ({ procs: [], omitted: [], shared: new Set(), resources: new Set() }),
    hooks: {
      pgIntrospection_introspection({ state, resolvedPreset }, { introspection, serviceName }) {
        const { schemas = ["public"] } = pgServiceOf(resolvedPreset, serviceName);
        const { callable, omitted } = chooseCallableFunctions(introspection, schemas);
        for (const proc of callable) returnCompositeBeneathDomain(proc, introspection);
        const byName = Map.groupBy(callable, functionNameOf);
        const shared = new Set([...byName].filter(([, procs]) => procs.length > 1).map(([name]) => name));
        const tables = findTablesWithoutColumns(introspection, schemas);
        Object.assign(state, { procs: introspection.procs, omitted: [...tables, ...omitted], shared });
        // The array is changed in place: core holds a reference to it.
        introspection.procs.splice(0, introspection.procs.length, ...callable);
      },
      async pgIntrospection_proc({ state, helpers }, { entity: proc, serviceName }) {
        // Core omits all overloads of a function.
        if (state.shared.has(functionNameOf(proc))) await helpers.pgProcedures.getResourceOptions(serviceName, proc);
      },
      pgProcedures_PgResourceOptions({ state }, { pgProc }) {
        state.resources.add(pgProc);
      },
    },
    async main(output, { state, helpers }) {
      await helpers.pgRegistry.getRegistry();
      const others = state.procs.filter((proc) => !state.resources.has(proc));
      output.omittedObjects = [...state.omitted, ...others.map((proc) => functionWithoutType(functionSignature(proc)))];
    },
  }),
};

type CallableFunctionsState = {
  procs: readonly PgProc[];
  omitted: readonly OmittedObject[];
  /** Names of overloaded functions. */
  shared: ReadonlySet<string>;
  /** Functions that have a resource. */
  readonly resources: Set<PgProc>;
};

/** Core omits a function if its result type has no columns itself. A domain in `from` has the columns of its base type. */
function returnCompositeBeneathDomain(proc: PgProc, { types }: Introspection): void {
  const returned = proc.getReturnType();
  const element = elementOf(returned);
  const composite = typeBeneathDomain(element ?? returned, types);
  if ((element ?? returned)?.typtype !== "d" || composite?.typtype !== "c") return;
  proc.prorettype = element ? composite.typarray! : composite._id;
}

function returnsCompositeArray(proc: PgProc, { types }: Introspection): boolean {
  const element = elementOf(typeBeneathDomain(proc.getReturnType(), types));
  return typeBeneathDomain(element, types)?.typtype === "c";
}

function elementOf(type: PgType | null | undefined): PgType | undefined {
  return type?.typtype === "b" ? type.getElemType() : undefined;
}

function typeBeneathDomain(type: PgType | null | undefined, types: readonly PgType[]): PgType | undefined {
  if (type?.typtype !== "d") return type ?? undefined;
  return typeBeneathDomain(
    types.find(({ _id }) => _id === type.typbasetype),
    types,
  );
}

function functionNameOf({ proname, pronamespace }: PgProc): string {
  return `${pronamespace}.${proname}`;
}

type ChosenFunctions = {
  readonly callable: readonly PgProc[];
  readonly omitted: readonly OmittedObject[];
};

/** Splits the executable functions of these schemas into those that GraphQL can call and those that it omits. */
function chooseCallableFunctions(introspection: Introspection, schemas: readonly string[]): ChosenFunctions {
  const extensionMembers = findExtensionMembers(introspection);
  const constructors = findRangeConstructors(introspection);
  const caller = introspection.getCurrentUser()!;
  const candidates = introspection.procs.filter(
    (proc) =>
      schemas.includes(proc.getNamespace()?.nspname ?? "") &&
      !extensionMembers.has(proc._id) &&
      !constructors.has(functionNameOf(proc)) &&
      !isInternalFunction(proc) &&
      entityPermissions(introspection, proc, caller, true).execute,
  );

  const omitted: OmittedObject[] = [];
  const omit = (proc: PgProc, reason: string, fix: string) =>
    omitted.push({
      object: `${UNSUPPORTED_KINDS[proc.prokind ?? ""]?.object ?? "function"} ${functionSignature(proc)}`,
      reason,
      fix,
      isBuildFault: false,
    });
  const callable = candidates.filter((proc) => {
    const reason = findObstacle(proc, introspection);
    if (reason !== null) omit(proc, reason, adviseWrapper(proc));
    return reason === null;
  });

  const served = new Set(callable);
  for (const group of Map.groupBy(callable.filter(hasDefaultFieldName), fieldScopeOf).values()) {
    const [first, ...others] = group.toSorted((one, other) => Number(one._id) - Number(other._id));
    for (const proc of others) {
      served.delete(proc);
      const fix = `comment on function ${functionSignature(proc)} is '@name another_name';`;
      omit(proc, `${functionSignature(first!)} was created before it and has its name`, fix);
    }
  }
  return { callable: [...served], omitted };
}

function adviseWrapper(proc: PgProc): string {
  return `-- Where GraphQL clients need ${functionSignature(proc)}: grant them a function that calls it.`;
}

function findObstacle(proc: PgProc, introspection: Introspection): string | null {
  const unsupportedKind = UNSUPPORTED_KINDS[proc.prokind ?? ""];
  if (unsupportedKind) return unsupportedKind.reason;
  if (proc.proname.startsWith("__")) return "GraphQL keeps names that begin with two underscores to itself";
  const parameters = proc.getArguments();
  if (parameters.some(({ isVariadic }) => isVariadic)) return "it takes VARIADIC arguments";
  const types = [proc.getReturnType(), ...parameters.map(({ type }) => type)];
  const polymorphic = types.find((type) => type?.typtype === "p" && POLYMORPHIC_TYPE_NAME.test(type.typname));
  if (polymorphic) return `it takes or returns ${polymorphic.typname}, which stands for any type`;
  if (inputTypesOf(proc).some(({ typname }) => typname === "record")) return "it takes a record of any type";
  const columns = parameters.filter(({ isOut }) => isOut);
  if (proc.getReturnType()?.typname === "record" && columns.length === 0) {
    return "it returns record without saying which columns that has";
  }
  // Core would leave out null items, and arrays without an item.
  if (proc.proretset && columns.length < 2 && returnsCompositeArray(proc, introspection))
    return "it returns a set of arrays of a composite type";
  return null;
}

/** Functions of triggers, languages, types and indexes, which SQL cannot call. */
function isInternalFunction(proc: PgProc): boolean {
  return [proc.getReturnType(), ...proc.getArguments().map(({ type }) => type)].some(
    (type) =>
      type?.typtype === "p" && !SUPPORTED_PSEUDO_TYPES.has(type.typname) && !POLYMORPHIC_TYPE_NAME.test(type.typname),
  );
}

/** True if the field has the default name, which overloads share: no comment names or hides it. */
function hasDefaultFieldName(proc: PgProc): boolean {
  const { name, fieldName, omit, behavior } = proc.getTags();
  const isHidden = omit !== undefined || [behavior ?? []].flat().join(" ").split(/\s+/).includes("-*");
  return typeof name !== "string" && typeof fieldName !== "string" && !isHidden && fieldScopeOf(proc) !== null;
}

/** Identifies the type that the function is a field of; overloads on different types do not clash. Null for mutations of a row, which GraphQL omits. */
function fieldScopeOf(proc: PgProc): string | null {
  const [first] = inputTypesOf(proc);
  const isOfRow = first?.typtype === "c";
  const isVolatile = proc.provolatile === "v";
  if (isOfRow && isVolatile && first.getClass()?.relkind !== "c") return null;
  return `${functionNameOf(proc)} ${isVolatile ? "mutation" : isOfRow ? first._id : "query"}`;
}

/** Core omits the constructor functions of range types. */
function findRangeConstructors({ types }: Introspection): ReadonlySet<string> {
  return new Set(types.filter(({ typtype }) => typtype === "r").map((type) => `${type.typnamespace}.${type.typname}`));
}

function findExtensionMembers({ depends, catalog_by_oid: catalogs }: Introspection): ReadonlySet<string> {
  const isInCatalog = (oid: string | null, catalog: string) => oid !== null && catalogs[oid] === catalog;
  const members = depends.filter(
    ({ classid, refclassid, deptype }) =>
      deptype === "e" && isInCatalog(classid, "pg_proc") && isInCatalog(refclassid, "pg_extension"),
  );
  return new Set(members.map(({ objid }) => objid!));
}
