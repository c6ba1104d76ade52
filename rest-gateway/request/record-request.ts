import { TABLE_PREFIX } from "#http";
import type { RequestOutline } from "#http/observability";
import { describeIntent, listUsedObjects, outlineIntent, type PlannedRequest, restoreIntent } from "#planner";
import type { Intent } from "#planner/intent";
import type { ParsedRequest, RequestState } from "./dialect.ts";

/** The parameter of the resource interface that selects columns. */
const NAMES_COLUMNS = /(?:^|&)fields=/;

/** Counts a request that has run, by its plan. */
export function recordRequest<Parsed extends ParsedRequest>(
  {
    request: { method, rawQuery },
    caller: { role },
    parsed: { catalog, version, pathTemplate },
    pipeline,
  }: RequestState<Parsed>,
  planned: PlannedRequest,
  intent: Intent,
): void {
  // Several paths can share a plan: the path of all rows, and that of the rows of another row.
  const path = pathTemplate?.().replace(/^\/api(?:\/v\d+)?\//, `/api/v${version}/`);
  const variant = path === undefined ? role : `${path} ${role}`;
  pipeline.recorder.count(pipeline.name, planned, variant, (): RequestOutline => {
    const { plan } = planned;
    const selectsDefault = pipeline.name === "resource" && !NAMES_COLUMNS.test(rawQuery);
    const isKnown = (name: string) =>
      plan.kind === "call"
        ? plan.routine.arguments.some((argument) => argument.name === name)
        : plan.table.columns.has(name);
    const outline = outlineIntent(intent, isKnown);
    const described = restoreIntent(outline);
    return {
      interface: pipeline.name,
      role,
      request: `${method} ${path ?? addressOf(described)}${describeIntent(described, selectsDefault)}`,
      ...(path !== undefined && { endpoint: `${method} ${path}` }),
      ...(selectsDefault && { selectsDefault }),
      ...listUsedObjects(planned, intent, catalog),
      intent: outline,
    };
  });
}

function addressOf(intent: Intent): string {
  if (intent.kind !== "call") return `${TABLE_PREFIX}/${intent.target.name}`;
  const { target, argument } = intent;
  const names =
    argument.kind === "query" ? argument.values.map(([name]) => name) : "names" in argument ? argument.names : [];
  return `${TABLE_PREFIX}/rpc/${target.name}(${[...new Set(names)].join(", ")})`;
}
