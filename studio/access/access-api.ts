import type {
  FindingList,
  MatrixPage,
  RefusalExplanation,
  RowsExplanation,
  WriteCommand,
  WritesExplanation,
} from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import { pathTo } from "../router.ts";

/** A role with claims, or a user with the claims of the account. */
export type TriedAs = { readonly role: string; readonly claims?: object } | { readonly user: string };

export type MatrixRequest = { readonly users: readonly string[]; readonly after: string | null };

/** Reads a page of the matrix for all roles that requests may take, and for these users. */
export function readMatrixPage({ users, after }: MatrixRequest, signal: AbortSignal): Promise<MatrixPage> {
  const query = new URLSearchParams([
    ...users.map((user) => ["user", user]),
    ...(after === null ? [] : [["after", after]]),
  ]);
  return adminCall<MatrixPage>(`GET /policies?${query}`, { signal });
}

type WhyRequest = { readonly path: string; readonly schema: string | null; readonly as: TriedAs };

export function explainRequest(body: WhyRequest, signal: AbortSignal): Promise<RowsExplanation | RefusalExplanation> {
  return adminCall("POST /why", { body, signal });
}

export type WhyWriteRequest = WhyRequest & { readonly command: WriteCommand; readonly values: object | null };

export function explainWrite(
  body: WhyWriteRequest,
  signal: AbortSignal,
): Promise<WritesExplanation | RefusalExplanation> {
  return adminCall("POST /why", { body, signal });
}

export async function readFindings(comparesMigrations: boolean, signal: AbortSignal): Promise<FindingList["findings"]> {
  const query = comparesMigrations ? "?migrations=true" : "";
  return (await adminCall<FindingList>(`GET /doctor${query}`, { signal })).findings;
}

/** The maximum length of values in an address; for longer ones the page explains the request without them. */
const MAX_VALUES_LENGTH = 2_000;

type LinkedWrite = {
  readonly command: WriteCommand;
  /** The written columns as a JSON object. */
  readonly values?: string;
};

/** The page that explains what a user sees, once a table is chosen. */
export function whyOfUser(user: string): string {
  return `${pathTo("access")}?${new URLSearchParams({ tab: "why", user })}`;
}

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
