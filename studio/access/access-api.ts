import { adminCall } from "../api/admin.ts";
import { pathTo } from "../frame/router.ts";

/** A role with claims, or a user with those of the account. */
export type TriedAs = { readonly role: string; readonly claims?: object } | { readonly user: string };

export type PolicyInWords = {
  readonly name: string;
  readonly command: string;
  readonly permissive: boolean;
  readonly roles: readonly string[];
  readonly using: string | null;
  readonly check: string | null;
  readonly comment: string | null;
  readonly words: string;
};

export type Outcome = {
  readonly kind: "rows" | "allowed" | "denied" | "failed";
  readonly count?: number;
  readonly code?: string;
  /** The policies that apply; null: the role bypasses them. */
  readonly policies: readonly string[] | null;
  readonly missing_grants: readonly string[];
};

export type TriedTable = {
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  readonly row_security: "off" | "enabled" | "forced";
  readonly total: number | null;
  readonly policies: readonly PolicyInWords[];
  readonly commands: readonly { readonly command: string; readonly results: readonly Outcome[] }[];
};

export type TriedCaller = { readonly role: string; readonly user: string | null; readonly name: string | null };

/** A page of `GET /admin/v1/policies`. */
export type MatrixPage = {
  readonly callers: readonly TriedCaller[];
  readonly tables: readonly TriedTable[];
  readonly table_count: number;
  readonly next: string | null;
};

/** The response of `POST /admin/v1/why`: with the refusal, or with all that follows it. */
export type Explanation = {
  readonly role: string;
  readonly user: string | null;
  readonly missing_grants: readonly string[];
  readonly refusal: {
    readonly status: number;
    readonly code: string;
    readonly message: string;
    readonly cause: string | null;
  } | null;
  readonly table?: {
    readonly schema: string;
    readonly name: string;
    readonly row_security: "off" | "enabled" | "forced";
    readonly bypasses_policies: boolean;
  };
  readonly visible?: number;
  readonly total?: number;
  readonly is_partial?: boolean;
  readonly hidden?: readonly {
    readonly key: Readonly<Record<string, string>>;
    readonly policies: readonly { readonly name: string; readonly passes: boolean | null }[];
  }[];
  readonly policies?: readonly PolicyInWords[];
  readonly unreadable_columns?: readonly string[];
  readonly plan?: string;
};

export type WriteCommand = "insert" | "update" | "delete";

type WriteCheck = {
  readonly command: string;
  readonly on: "existing" | "new";
  readonly passes: boolean;
  readonly policies: readonly { readonly name: string; readonly passes: boolean | null }[];
};

/** The response for a write. */
export type WriteExplanation = Pick<Explanation, "role" | "refusal" | "missing_grants" | "table" | "is_partial"> & {
  readonly policies?: readonly PolicyInWords[];
  readonly rows?: readonly {
    readonly key: Readonly<Record<string, string>>;
    readonly is_allowed: boolean;
    readonly checks: readonly WriteCheck[];
  }[];
};

export type Finding = {
  readonly kind: "danger" | "advice" | "slow";
  readonly problem: string;
  readonly fix: string;
  /** For a migration; null where the fix is not SQL of the schema. */
  readonly sql: string | null;
};

export type MatrixRequest = { readonly users: readonly string[]; readonly after: string | null };

/** All roles that requests may take, and these users. */
export function readMatrixPage({ users, after }: MatrixRequest, signal: AbortSignal): Promise<MatrixPage> {
  const query = new URLSearchParams([
    ...users.map((user) => ["user", user]),
    ...(after === null ? [] : [["after", after]]),
  ]);
  return adminCall<MatrixPage>(`GET /policies?${query}`, { signal });
}

export type WhyRequest = { readonly path: string; readonly schema: string | null; readonly as: TriedAs };

export function explainRequest(body: WhyRequest, signal: AbortSignal): Promise<Explanation> {
  return adminCall<Explanation>("POST /why", { body, signal });
}

export type WhyWriteRequest = WhyRequest & { readonly command: WriteCommand; readonly values: object | null };

export function explainWrite(body: WhyWriteRequest, signal: AbortSignal): Promise<WriteExplanation> {
  return adminCall<WriteExplanation>("POST /why", { body, signal });
}

export async function readFindings(comparesMigrations: boolean, signal: AbortSignal): Promise<readonly Finding[]> {
  const query = comparesMigrations ? "?migrations=true" : "";
  return (await adminCall<{ findings: readonly Finding[] }>(`GET /doctor${query}`, { signal })).findings;
}

/** Longer values do not fit into an address: the page then explains what can be said without them. */
const MAX_VALUES_LENGTH = 2_000;

export type LinkedWrite = {
  readonly command: WriteCommand;
  /** The written columns as a JSON object. */
  readonly values?: string;
};

/** The page that explains a request for rows, or a write of them: whyLink("/rest/v1/films?id=eq.7"). */
export function whyLink(path: string, schema: string | null = null, write: LinkedWrite | null = null): string {
  const { command, values = "" } = write ?? {};
  const query = new URLSearchParams({
    tab: "why",
    path,
    ...(schema !== null && schema !== "public" && { schema }),
    ...(command && { command }),
    ...(values !== "" && values.length <= MAX_VALUES_LENGTH && { values }),
  });
  return `${pathTo("access")}?${query}`;
}
