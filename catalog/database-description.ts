/** The response of `GET /admin/v1/catalog`, which describes a database. Names are not quoted; `type` and definitions are SQL. */
export type DatabaseDescription = {
  readonly database: DescribedDatabase;
  readonly schemas: readonly DescribedSchema[];
  /** All roles except those of Postgres. */
  readonly roles: readonly DescribedRole[];
  readonly extensions: readonly DescribedExtension[];
  readonly publications: readonly DescribedPublication[];
  /** Enums, domains, composite and range types; without row types of tables. */
  readonly types: readonly DescribedType[];
  readonly tables: readonly DescribedTable[];
  /** All functions except those of extensions. */
  readonly functions: readonly DescribedFunction[];
  readonly sequences: readonly DescribedSequence[];
};

type DescribedDatabase = {
  readonly name: string;
  readonly owner: string;
  readonly comment: string | null;
  /** Postgres's version, such as 18.4. */
  readonly version: string;
};

export type DescribedName = { readonly schema: string; readonly name: string };

/** `public` is PUBLIC. */
export type DescribedGrant = { readonly role: string; readonly privileges: readonly string[] };

export type DescribedSchema = {
  readonly name: string;
  readonly owner: string;
  readonly comment: string | null;
  /** True if the interfaces serve the schema. */
  readonly exposed: boolean;
  /** True if the schema belongs to the service or to its tools. */
  readonly internal: boolean;
  readonly grants: readonly DescribedGrant[];
};

export type DescribedRole = {
  readonly name: string;
  readonly comment: string | null;
  readonly superuser: boolean;
  readonly login: boolean;
  readonly bypasses_row_security: boolean;
  /** True if requests can run with the role. */
  readonly settable: boolean;
  /** The roles whose privileges the role has, including itself. */
  readonly inherits: readonly string[];
};

export type DescribedExtension = {
  readonly name: string;
  readonly schema: string;
  readonly version: string;
  readonly comment: string | null;
};

export type DescribedPublication = {
  readonly name: string;
  readonly owner: string;
  /** True if realtime clients get the changes of the publication. */
  readonly realtime: boolean;
  readonly all_tables: boolean;
  readonly events: readonly ("insert" | "update" | "delete" | "truncate")[];
  readonly tables: readonly DescribedName[];
};

export type DescribedType = DescribedName & {
  readonly kind: "enum" | "domain" | "composite" | "range" | "multirange";
  readonly comment: string | null;
  /** The labels of an enum. */
  readonly labels: readonly string[];
  /** The type below a domain or a range. */
  readonly base_type: string | null;
  readonly not_null: boolean;
  readonly default: string | null;
  /** The check constraints of a domain. */
  readonly checks: readonly { readonly name: string; readonly expression: string }[];
  /** The attributes of a composite type. */
  readonly attributes: readonly { readonly name: string; readonly type: string; readonly comment: string | null }[];
};

export type DescribedTable = DescribedName & {
  readonly kind: "table" | "partitioned table" | "view" | "materialized view" | "foreign table";
  readonly owner: string;
  readonly comment: string | null;
  /** True if the interfaces serve the relation: its schema is exposed, and it is neither a partition nor part of an extension. */
  readonly exposed: boolean;
  readonly extension: string | null;
  readonly unlogged: boolean;
  /** The changes that Postgres accepts; for a view, for example, `insert` if it is updatable or has a trigger. */
  readonly changes: readonly ("insert" | "update" | "delete")[];
  readonly columns: readonly DescribedColumn[];
  readonly primary_key: readonly string[];
  readonly foreign_keys: readonly DescribedForeignKey[];
  readonly constraints: readonly DescribedConstraint[];
  readonly indexes: readonly DescribedIndex[];
  readonly triggers: readonly DescribedTrigger[];
  /** The objects that use its columns, in this schema and in others. Texts of functions are not searched. */
  readonly dependents: readonly DescribedDependent[];
  readonly policies: readonly DescribedPolicy[];
  readonly row_security: "off" | "enabled" | "forced";
  /** True if administrators see and change only the rows that policies for others allow. */
  readonly lacks_administrator_policy: boolean;
  /** True for a view whose privileges and policies are checked for the caller. */
  readonly security_invoker: boolean;
  readonly replica_identity: "default" | "nothing" | "full" | "index";
  /** True if realtime clients get its changes. */
  readonly published: boolean;
  readonly grants: readonly DescribedGrant[];
  /** The tables that it inherits from, or the partitioned table that it is a partition of. */
  readonly parents: readonly DescribedName[];
  /** The partition key, such as `RANGE (year)`. */
  readonly partition_key: string | null;
  /** The bound of a partition, such as `FOR VALUES FROM (2024) TO (2025)`; null if it is no partition. */
  readonly partition_bound: string | null;
  /** The server of a foreign table. */
  readonly server: string | null;
  /** The query of a view. */
  readonly definition: string | null;
  /** Null for views and foreign tables. For a partitioned table, it is the sum of its partitions. */
  readonly estimated_rows: number | null;
  readonly bytes: number | null;
};

export type DescribedColumn = {
  readonly name: string;
  readonly position: number;
  readonly type: string;
  /** The type without domains and modifiers. */
  readonly base_type: string;
  readonly type_kind: "base" | "enum" | "array" | "range" | "multirange" | "composite" | "pseudo";
  /** The labels of an enum or an array of enums. */
  readonly labels: readonly string[] | null;
  /** The domain, enum or composite type of a schema that is described here. */
  readonly type_name: DescribedName | null;
  readonly max_length: number | null;
  readonly nullable: boolean;
  readonly default: string | null;
  readonly identity: "always" | "by default" | null;
  readonly generated: { readonly kind: "stored" | "virtual"; readonly expression: string } | null;
  readonly collation: string | null;
  readonly comment: string | null;
  /** The grants on this column only, in addition to those on the table. */
  readonly grants: readonly DescribedGrant[];
  /** The table's column that the column of a view shows. */
  readonly origin: (DescribedName & { readonly column: string }) | null;
};

type DescribedKeyAction = "no action" | "restrict" | "cascade" | "set null" | "set default";

export type DescribedForeignKey = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly target: DescribedName;
  readonly target_columns: readonly string[];
  readonly on_update: DescribedKeyAction;
  readonly on_delete: DescribedKeyAction;
};

export type DescribedConstraint = {
  readonly name: string;
  readonly kind: "primary key" | "unique" | "foreign key" | "check" | "exclude";
  readonly columns: readonly string[];
  readonly definition: string;
  /** False for `not valid`. */
  readonly valid: boolean;
  readonly deferrable: boolean;
  /** True if the constraint comes from the table that this one is a partition or a child of. */
  readonly inherited: boolean;
  readonly comment: string | null;
};

export type DescribedIndex = {
  readonly name: string;
  readonly definition: string;
  readonly method: string;
  readonly unique: boolean;
  /** The constraint that the index belongs to. */
  readonly constraint: string | null;
  /** False while the index is built, and after `create index concurrently` has failed. */
  readonly valid: boolean;
  /** The key columns; null stands for an expression. */
  readonly columns: readonly (string | null)[];
  readonly predicate: string | null;
  readonly bytes: number | null;
  /** The number of scans since statistics were reset. */
  readonly scans: number;
  readonly comment: string | null;
};

export type DescribedTrigger = {
  readonly name: string;
  readonly definition: string;
  readonly enabled: "always" | "disabled" | "origin" | "replica";
  readonly function: DescribedName;
  readonly comment: string | null;
};

export type DescribedDependent = DescribedName & {
  readonly kind: "column" | "function" | "policy" | "trigger" | "view";
  /** The table of a policy, trigger or column. */
  readonly of: string | null;
  /** The columns that the object uses. */
  readonly columns: readonly string[];
};

export type DescribedPolicy = {
  readonly name: string;
  readonly command: "all" | "select" | "insert" | "update" | "delete";
  readonly permissive: boolean;
  readonly roles: readonly string[];
  readonly using: string | null;
  readonly check: string | null;
  readonly comment: string | null;
};

export type DescribedFunction = DescribedName & {
  /** The name with the types of the arguments, as `drop function` takes them. Unlike the name, it is unique in its schema. */
  readonly signature: string;
  readonly kind: "function" | "procedure" | "aggregate" | "window";
  /** The arguments as `create function` takes them, with names and defaults. */
  readonly arguments: string;
  readonly inputs: readonly DescribedArgument[];
  /** Null for procedures. */
  readonly returns: string | null;
  readonly language: string;
  readonly volatility: "immutable" | "stable" | "volatile";
  readonly security_definer: boolean;
  readonly strict: boolean;
  readonly owner: string;
  readonly comment: string | null;
  /** True if the interfaces serve the function. */
  readonly exposed: boolean;
  readonly grants: readonly DescribedGrant[];
  /** Null for aggregates. */
  readonly definition: string | null;
};

export type DescribedArgument = {
  readonly name: string | null;
  readonly type: string;
  readonly mode: "in" | "inout" | "variadic";
  readonly default: string | null;
};

export type DescribedSequence = DescribedName & {
  readonly type: string;
  readonly start: string;
  readonly increment: string;
  readonly minimum: string;
  readonly maximum: string;
  readonly cycle: boolean;
  /** The serial or identity column that it belongs to. */
  readonly owned_by: (DescribedName & { readonly column: string }) | null;
  readonly comment: string | null;
};
