import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { RowsState } from "./rows/filters.ts";
import { isSortable } from "./rows/table-access.ts";
import type { TableColumns } from "./rows/use-columns.ts";

type ColumnMenuProps = {
  readonly column: string;
  readonly anchor: Element;
  readonly columns: TableColumns;
  readonly state: RowsState;
  readonly onState: (state: RowsState) => void;
  readonly onAddFilter: (column: string) => void;
  readonly onClose: () => void;
};

const MENU_WIDTH = 200;

/** The menu of a column, below its header. */
export function ColumnMenu(props: ColumnMenuProps) {
  const { column, anchor, onClose } = props;
  const root = useRef<HTMLDivElement>(null);
  const entries = () => [...root.current!.querySelectorAll<HTMLElement>("[role=menuitem]:not([disabled])")];
  useEffect(() => {
    entries()[0]?.focus();
    const closeOutside = (event: Event) => !root.current?.contains(event.target as Node) && onClose();
    document.addEventListener("pointerdown", closeOutside);
    return () => document.removeEventListener("pointerdown", closeOutside);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (step !== 0) {
      const list = entries();
      list.at((list.indexOf(document.activeElement as HTMLElement) + step) % list.length)?.focus();
    } else return;
    event.preventDefault();
  };
  const { left, bottom } = anchor.getBoundingClientRect();
  const place = {
    left: `${Math.max(8, Math.min(left, innerWidth - MENU_WIDTH - 8))}px`,
    top: `${bottom}px`,
    right: "auto",
  };
  return html`
    <div ref=${root} class="menu-list column-menu" role="menu" aria-label=${texts.tables.columnMenu(column)} style=${place} onKeyDown=${onKeyDown}>
      ${menuActions(props).map(
        ({ label, act }) => html`
          <button key=${label} type="button" role="menuitem" tabindex="-1" onClick=${() => {
            onClose();
            act();
          }}>${label}</button>
        `,
      )}
    </div>
  `;
}

type MenuAction = { readonly label: string; readonly act: () => void };

function menuActions({ column, columns, state, onState, onAddFilter }: ColumnMenuProps): MenuAction[] {
  const sortBy = (descending: boolean) => () => onState({ ...state, sort: [{ column, descending }] });
  const names = columns.shown.map(({ id }) => id);
  const at = names.indexOf(column);
  const sorts: MenuAction[] = [
    { label: texts.tables.sortAscending, act: sortBy(false) },
    { label: texts.tables.sortDescending, act: sortBy(true) },
  ];
  const unsort = {
    label: texts.tables.unsort,
    act: () => onState({ ...state, sort: state.sort.filter((term) => term.column !== column) }),
  };
  return [
    ...(isSortable(columns.byName.get(column)!) ? sorts : []),
    ...(state.sort.some((term) => term.column === column) ? [unsort] : []),
    { label: texts.tables.filterBy, act: () => onAddFilter(column) },
    ...(at > 0 ? [{ label: texts.tables.moveLeft, act: () => columns.move(column, names[at - 1]!) }] : []),
    ...(at < names.length - 1
      ? [{ label: texts.tables.moveRight, act: () => columns.move(column, names[at + 1]!) }]
      : []),
    { label: texts.tables.hideColumn, act: () => columns.hide(column, true) },
  ];
}
