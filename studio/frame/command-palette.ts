import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type DatabaseDescription, shortName } from "../api/catalog.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { Dialog } from "../components/dialog.ts";
import { Icon, type IconName } from "../components/icon.ts";
import { html } from "../html.ts";
import { navigate, pathTo } from "../router.ts";
import { pathToFunction } from "../schema/objects.ts";
import { texts } from "../texts.ts";
import { pages } from "./pages.ts";

export type Command = {
  readonly label: string;
  /** The kind of page that it opens, such as "Table". */
  readonly kind: string;
  readonly icon: IconName;
  readonly path: string;
};

const MAX_SHOWN = 50;

/** Opens a page, a table or a function by a part of its name. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }) {
  const catalog = useCatalog();
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const id = useId();
  const found = findCommands(commandsOf(catalog.value), query).slice(0, MAX_SHOWN);
  const open = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    navigate(command.path);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") open(found[active]);
    else if (step !== undefined && found.length > 0) setActive((active + step + found.length) % found.length);
    else return;
    event.preventDefault();
  };
  return html`
    <${Dialog} title=${texts.frame.palette} onClose=${onClose}>
      <input
        role="combobox"
        aria-label=${texts.frame.paletteField}
        aria-expanded="true"
        aria-controls=${id}
        aria-activedescendant=${found.length > 0 ? `${id}-${active}` : undefined}
        autofocus
        autocomplete="off"
        spellcheck=${false}
        placeholder=${texts.frame.paletteField}
        value=${query}
        onKeyDown=${onKeyDown}
        onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => {
          setQuery(currentTarget.value);
          setActive(0);
        }}
      />
      <${CommandList} id=${id} commands=${found} active=${active} onOpen=${open} />
      ${found.length === 0 && html`<p class="quiet" role="status">${texts.frame.paletteEmpty}</p>`}
    <//>
  `;
}

type CommandListProps = {
  readonly id: string;
  readonly commands: readonly Command[];
  /** The index of the command that Enter opens. */
  readonly active: number;
  readonly onOpen: (command: Command) => void;
};

function CommandList({ id, commands, active, onOpen }: CommandListProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [active, commands[active]?.path],
  );
  return html`
    <ul class="palette-list" id=${id} role="listbox" aria-label=${texts.frame.palette} ref=${list}>
      ${commands.map(
        (command, index) => html`
          <li
            key=${command.path}
            id=${`${id}-${index}`}
            role="option"
            aria-selected=${index === active}
            onClick=${() => onOpen(command)}
          >
            <${Icon} name=${command.icon} /><span>${command.label}</span><span class="quiet">${command.kind}</span>
          </li>
        `,
      )}
    </ul>
  `;
}

/** Returns pages first, then exposed tables and functions, each with its actions. */
function commandsOf(catalog: Pick<DatabaseDescription, "tables" | "functions"> | null): Command[] {
  const ofPages = pages.map(({ name, title, icon }) => ({
    label: title,
    kind: texts.frame.commandKinds.page,
    icon,
    path: pathTo(name),
  }));
  const ofTables = (catalog?.tables ?? []).flatMap((table): Command[] => [
    ...(table.exposed
      ? [
          {
            label: shortName(table),
            kind: texts.frame.commandKinds.rows,
            icon: "table" as const,
            path: pathTo("tables", table.schema, table.name),
          },
        ]
      : []),
    {
      label: shortName(table),
      kind: texts.frame.commandKinds.schema,
      icon: "diagram",
      path: pathTo("schema", "table", table.schema, table.name),
    },
  ]);
  const ofFunctions = (catalog?.functions ?? [])
    .filter(({ exposed, kind, returns }) => exposed && kind === "function" && returns !== "trigger")
    .map(
      (called): Command => ({
        label: `${shortName(called)}(${called.signature})`,
        kind: texts.frame.commandKinds.schema,
        icon: "function",
        path: pathToFunction(called),
      }),
    );
  return [...ofPages, ...ofTables, ...ofFunctions];
}

/** Returns the commands with all words; names that begin with the first word come first. */
function findCommands(commands: readonly Command[], query: string): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const textOf = ({ label, kind }: Command) => `${label} ${kind}`.toLowerCase();
  const matches = commands.filter((command) => words.every((word) => textOf(command).includes(word)));
  const rankOf = ({ label }: Command) => (label.toLowerCase().startsWith(words[0] ?? "") ? 0 : 1);
  return matches.sort((one, other) => rankOf(one) - rankOf(other));
}
