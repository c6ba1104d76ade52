import type { PgSelectQueryBuilder, PgSelectStep } from "@dataplan/pg";
import {
  ConstantStep,
  connection,
  constant,
  type ExecutionDetails,
  type FieldArgs,
  type FieldInfo,
  type FieldPlanResolver,
  type GrafastResultsList,
  lambda,
  Step,
} from "grafast";
import type { FieldSource, PagePart } from "../../../plugins/field-sources.ts";
import type { OrderValueReader } from "../../../plugins/OrderByPlugin.ts";
import {
  orderExpressionsOf,
  type RowOrder,
  readLimit,
  readOffset,
  readPage,
} from "../../../plugins/PaginationPlugin.ts";
import { bindWithCodec, conditionOf, type InputObject } from "../../../plugins/row-conditions.ts";
import type { PgTable } from "../../../plugins/table.ts";
import { hasRowArgument } from "../../../plugins/WherePlugin.ts";

type RowsSource = Extract<FieldSource, { readonly kind: "rows" }>;
type SelectedRows = PgSelectStep<PgTable>;
export type Connection = ReturnType<typeof connection>;

/** The filtered, ordered page of a list or connection. Core plans the rows, except those of searches. */
export function planRows(source: RowsSource, plan: FieldPlanResolver | undefined): FieldPlanResolver {
  const allRows = plan ?? (() => connection(source.table.find()) as Step);
  const filtered = planWhere(source, allRows);
  return source.isConnection ? planConnection(source, filtered) : planList(source, filtered);
}

/** A function determines its rows and their order itself; only the maximum page size applies. */
export function planFunctionRows(plan: FieldPlanResolver, maxPageSize: number): FieldPlanResolver {
  return ($parent, args, info) => {
    const $rows = plan($parent, args, info) as SelectedRows;
    $rows.setFirst(constant(maxPageSize));
    return $rows;
  };
}

/** A flag of the page info. Null for other parts. */
export function planPagePart(part: PagePart): FieldPlanResolver | null {
  switch (part) {
    case "hasPreviousPage":
      return planHasMore(part, ($connection) => $connection.getAfter());
    case "hasNextPage":
      return planHasMore(part, ($connection) => $connection.getBefore());
    default:
      return null;
  }
}

function planWhere({ conditionFields, isConnection }: RowsSource, plan: FieldPlanResolver): FieldPlanResolver {
  const restrict = (where: unknown) => (builder: PgSelectQueryBuilder) => {
    if (where == null) return;
    builder.where(conditionOf(conditionFields(), where as InputObject, builder.alias, bindWithCodec));
  };
  return ($parent, args, info) => {
    const $result = plan($parent, args, info);
    if (!hasRowArgument(info.field, "where")) return $result;
    const $where: Step = args.getRaw("where");
    if ($where instanceof ConstantStep && $where.data == null) return $result;
    const $rows = isConnection ? ($result as Connection).getSubplan() : $result;
    ($rows as Step as PgSelectStep).apply(lambda($where, restrict));
    return $result;
  };
}

function planList(source: RowsSource, plan: FieldPlanResolver): FieldPlanResolver {
  const setOrder = makeSetOrder(source);
  const limitOf = (limit: number | null | undefined) => readLimit(limit, source.maxPageSize);
  return ($parent, args, info) => {
    const $rows = plan($parent, args, info) as SelectedRows;
    setOrder($rows, args, info);
    const limit = checkedCount(args.getRaw("limit"), limitOf);
    $rows.setFirst(limit.$count);
    if (!info.field.args.some(({ name }) => name === "offset")) return withChecks($rows, [limit.$check]);
    const offset = checkedCount(args.getRaw("offset"), readOffset);
    $rows.setOffset(offset.$count);
    return withChecks($rows, [limit.$check, offset.$check]);
  };
}

type Count = number | null | undefined;

/** The number for the statement, and a step that fails when the client's is refused; a literal is checked while planning. */
function checkedCount(
  $number: Step<Count>,
  read: (count: Count) => number,
): { $count: Step<number>; $check: Step | null } {
  if ($number instanceof ConstantStep) return { $count: constant(read($number.data)), $check: null };
  const $check = lambda($number, read);
  const $count = lambda($number, (count) => {
    try {
      return read(count);
    } catch {
      return 0;
    }
  });
  return { $count, $check };
}

function withChecks($rows: SelectedRows, checks: readonly (Step | null)[]): Step {
  const needed = checks.filter((check) => check !== null);
  return needed.length === 0 ? $rows : new CheckedRowsStep($rows, needed);
}

function planConnection(source: RowsSource, plan: FieldPlanResolver): FieldPlanResolver {
  const setOrder = makeSetOrder(source);
  const pageOf = ([first, last]: readonly [number | undefined, number | undefined]) =>
    readPage(first, last, source.maxPageSize);
  return ($parent, args, info) => {
    const $connection = plan($parent, args, info) as Connection;
    setOrder($connection.getSubplan() as Step as SelectedRows, args, info);
    const $page = lambda([args.getRaw("first"), args.getRaw("last")], pageOf);
    $connection.setFirst(lambda($page, ({ first }) => first));
    $connection.setLast(lambda($page, ({ last }) => last));
    $connection.setAfter(args.getRaw("after"));
    $connection.setBefore(args.getRaw("before"));
    return $connection;
  };
}

type OrderableRows = Pick<PgSelectQueryBuilder, "alias" | "orderBy" | "setOrderIsUnique">;

function applyOrder(rows: OrderableRows, table: PgTable, order: RowOrder): void {
  for (const { fragment, codec, isNullable, direction } of orderExpressionsOf(rows.alias, table, order)) {
    rows.orderBy({ fragment, codec, nullable: isNullable, direction });
  }
  if (order.isTotal) rows.setOrderIsUnique();
}

type SetOrder = ($rows: SelectedRows, args: FieldArgs, info: FieldInfo) => void;

/** An order that the document does not contain is known when the statement is built. */
function makeSetOrder({ table, orderOf }: RowsSource): SetOrder {
  const reader: OrderValueReader = { bind: bindWithCodec, constantOf: (value) => value };
  const orderBy = (value: unknown) => (builder: PgSelectQueryBuilder) =>
    applyOrder(builder, table, orderOf(value, reader));
  return ($rows, args, info) => {
    const $orderBy: Step | null = hasRowArgument(info.field, "orderBy") ? args.getRaw("orderBy") : null;
    if ($orderBy === null || ($orderBy instanceof ConstantStep && $orderBy.data == null)) {
      applyOrder($rows, table, orderOf(null, reader));
    } else {
      $rows.apply(lambda($orderBy, orderBy));
    }
  };
}

/** Plans the flag. PostGraphile looks one row ahead, never back. A given cursor marks a row, so there is a page on its other side. */
function planHasMore(
  side: "hasNextPage" | "hasPreviousPage",
  cursorOf: ($connection: Connection) => Step | null,
): FieldPlanResolver {
  return ($parent) => {
    const $page = $parent as ReturnType<Connection["pageInfo"]>;
    // biome-ignore lint/complexity/useLiteralKeys: protected, and the only access from a page to its connection.
    const $cursor = cursorOf($page["getDepOptions"]<Connection>(0).step);
    const $more = $page.get(side);
    return $cursor ? lambda([$more, $cursor], ([more, cursor]) => more || cursor != null) : $more;
  };
}

type SelectedItems = ReturnType<PgSelectStep["items"]>;

/**
 * The rows of a list whose arguments may be refused. The list is often part of its parent's statement, which an error would fail
 * as a whole; so the list is read with replacement arguments and fails by itself.
 */
class CheckedRowsStep extends Step {
  static override $$export = { moduleName: import.meta.filename, exportName: "CheckedRowsStep" };

  constructor($rows: PgSelectStep, checks: readonly Step[]) {
    super();
    this.isSyncAndSafe = true;
    this.addStrongDependency($rows.items());
    for (const $check of checks) this.addDependency($check);
  }

  listItem($item: Step): Step {
    return (this.getDepOptions(0).step as SelectedItems).listItem(
      $item as Parameters<SelectedItems["listItem"]>[0],
    ) as Step;
  }

  override execute({ indexMap, values }: ExecutionDetails): GrafastResultsList<unknown> {
    const rows = values[0]!;
    return indexMap((index) => rows.at(index));
  }
}
