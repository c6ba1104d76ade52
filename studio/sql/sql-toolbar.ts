import type { DescribedRole } from "../api/catalog.ts";
import type { ViewedCaller } from "../api/viewed-caller.ts";
import { Button } from "../components/button.ts";
import { Checkbox } from "../components/field.ts";
import { Menu, type MenuItem } from "../components/menu.ts";
import { Select } from "../components/select.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { pathTo } from "../router.ts";
import { texts } from "../texts.ts";
import type { QueryRun } from "./query-runs.ts";
import { OWNER, ROLE_PREFIX, type SqlOptions, VIEWED } from "./sql-request.ts";
import { openTabs } from "./stored-queries.ts";

const LIMITS = [100, 1_000, 10_000, 50_000];

type ToolbarProps = {
  /** The running query; null if nothing runs. */
  readonly running: Extract<QueryRun, { state: "running" }> | null;
  readonly onRun: () => void;
  readonly onRunAll: () => void;
  readonly onExplain: (explain: "plan" | "analyze") => void;
  readonly onDialog: (dialog: "history" | "saved" | "save") => void;
};

export function SqlToolbar({ running, onRun, onRunAll, onExplain, onDialog }: ToolbarProps) {
  const items: MenuItem[] = [
    { label: texts.sql.save, icon: "download", onSelect: () => onDialog("save") },
    { label: texts.sql.saved, icon: "menu", onSelect: () => onDialog("saved") },
    { label: texts.sql.copyLink, icon: "link", onSelect: copyLink },
  ];
  return html`
    <div class="sql-toolbar">
      ${
        running
          ? html`<${Button} key="stop" kind="danger" icon="stop" onClick=${running.stop}>${texts.sql.stop}<//>`
          : html`<${Button} key="run" kind="primary" icon="play" title=${texts.sql.runHint} onClick=${onRun}>${texts.sql.run}<//>`
      }
      <${Button} disabled=${running !== null} title=${texts.sql.runAllHint} onClick=${onRunAll}>${texts.sql.runAll}<//>
      <${Button} disabled=${running !== null} title=${texts.sql.explainHint} onClick=${() => onExplain("plan")}>${texts.sql.explain}<//>
      <${Button} disabled=${running !== null} title=${texts.sql.analyzeHint} onClick=${() => onExplain("analyze")}>${texts.sql.analyze}<//>
      <span class="sql-toolbar-end">
        <${Button} kind="quiet" icon="clock" onClick=${() => onDialog("history")}>${texts.sql.history}<//>
        <${Menu} label=${texts.sql.more} items=${items} />
      </span>
    </div>
  `;
}

async function copyLink(): Promise<void> {
  const { tabs, current } = openTabs.get();
  const text = tabs.find(({ id }) => id === current)?.text ?? "";
  const link = `${window.location.origin}${pathTo("sql")}?${new URLSearchParams({ query: text })}`;
  await navigator.clipboard.writeText(link);
  showToast({ text: texts.sql.linkCopied });
}

type OptionFieldsProps = {
  readonly options: SqlOptions;
  readonly viewed: ViewedCaller | null;
  readonly roles: readonly DescribedRole[];
  readonly onChange: (options: SqlOptions) => void;
};

/** The fields that choose the role of the statements, and the size of their results. */
export function SqlOptionFields({ options, viewed, roles, onChange }: OptionFieldsProps) {
  const callers = [
    { value: OWNER, label: texts.sql.owner },
    ...(viewed ? [{ value: VIEWED, label: texts.sql.viewed(viewed.label) }] : []),
    ...roles
      .filter(({ settable }) => settable)
      .map(({ name }) => ({ value: ROLE_PREFIX + name, label: texts.sql.role(name) })),
  ];
  const limits = LIMITS.map((limit) => ({ value: String(limit), label: texts.sql.rows(limit) }));
  return html`
    <${Select} label=${texts.sql.as} hideLabel value=${options.as} options=${callers} onChange=${(as: string) => onChange({ ...options, as })} />
    <${Select}
      label=${texts.sql.limit}
      hideLabel
      value=${String(options.limit)}
      options=${limits}
      onChange=${(limit: string) => onChange({ ...options, limit: Number(limit) })}
    />
    <${Checkbox} label=${texts.sql.readOnly} checked=${options.readOnly} onChange=${(readOnly: boolean) => onChange({ ...options, readOnly })} />
  `;
}
