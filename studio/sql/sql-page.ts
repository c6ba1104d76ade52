import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DatabaseDescription } from "../api/catalog.ts";
import { sessionState } from "../api/session.ts";
import { useCatalog } from "../api/use-catalog.ts";
import type { ViewedCaller } from "../api/viewed-caller.ts";
import { CodeEditor, type CodeMirror } from "../components/code-editor.ts";
import { Notice } from "../components/notice.ts";
import { PageHeader } from "../components/page.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { setSearchParameter, useSearchParameter } from "../router.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { makeCompletion } from "./completion.ts";
import { HistoryDialog, QueryTabs, SaveDialog, SavedDialog } from "./query-lists.ts";
import { problemsOf, type QueryRun, queryRuns, type RunText, startRun } from "./query-runs.ts";
import { ResultPanel } from "./result-panel.ts";
import { OWNER, type SqlOptions, VIEWED } from "./sql-request.ts";
import { SqlOptionFields, SqlToolbar } from "./sql-toolbar.ts";
import { addTab, changeTab, openTabs, type QueryTab } from "./stored-queries.ts";

const DEFAULT_LIMIT = 1000;

export function SqlPage() {
  const session = useStore(sessionState);
  if (session.status !== "signed-in") return null;
  if (!session.session.studio.sql) {
    return html`
      <${PageHeader} title=${texts.sql.title} />
      <div class="page-body"><${Notice}>${texts.sql.off}<//></div>
    `;
  }
  return html`<${SqlWorkspace} viewed=${session.viewAs} />`;
}

type OpenDialog = "history" | "saved" | "save" | null;

function SqlWorkspace({ viewed }: { readonly viewed: ViewedCaller | null }) {
  useSharedQuery();
  const { tabs, current } = useStore(openTabs);
  const tab = tabs.find(({ id }) => id === current) ?? tabs[0]!;
  const run = useStore(queryRuns)[tab.id];
  const catalog = useCatalog().value;
  const [options, setOptions] = useSqlOptions(viewed);
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const editor = useRef<CodeMirror | null>(null);
  const start = (text: RunText | null, explain: SqlOptions["explain"] = "no") => {
    if (run?.state === "running") return;
    if (!text || text.sql.trim() === "") showToast({ text: texts.sql.nothingToRun });
    else void startRun(tab.id, text, { ...options, explain }, viewed);
  };
  const runChosen = () => start(chosenText(editor.current));
  const runAll = () => start({ sql: openText(), start: 0 });
  return html`
    <${PageHeader} title=${texts.sql.title}>
      <${SqlOptionFields} options=${options} viewed=${viewed} roles=${catalog?.roles ?? []} onChange=${setOptions} />
    <//>
    <div class="sql">
      <${QueryTabs} />
      <${SqlToolbar}
        running=${run?.state === "running" ? run : null}
        onRun=${runChosen}
        onRunAll=${runAll}
        onExplain=${(explain: "plan" | "analyze") => start(chosenText(editor.current), explain)}
        onDialog=${setDialog}
      />
      <${QueryEditor} key=${tab.id} tab=${tab} run=${run} catalog=${catalog} editor=${editor} onRun=${runChosen} onRunAll=${runAll} />
      <section class="sql-results" aria-label=${texts.sql.results}><${ResultPanel} key=${tab.id} run=${run} /></section>
    </div>
    <${QueryDialog} dialog=${dialog} setDialog=${setDialog} onRun=${(sql: string) => start({ sql, start: 0 })} />
  `;
}

type QueryEditorProps = {
  readonly tab: QueryTab;
  readonly run: QueryRun | undefined;
  readonly catalog: DatabaseDescription | null;
  readonly editor: { current: CodeMirror | null };
  readonly onRun: () => void;
  readonly onRunAll: () => void;
};

function QueryEditor({ tab, run, catalog, editor, onRun, onRunAll }: QueryEditorProps) {
  const completion = useMemo(() => catalog && makeCompletion(catalog), [catalog]);
  const problems = useMemo(() => problemsOf(run, tab.text), [run, tab.text]);
  const keep = (opened: CodeMirror | null) => {
    editor.current = opened;
  };
  return html`
    <div class="sql-editor">
      <${CodeEditor}
        label=${texts.sql.statements}
        language="sql"
        size="fill"
        autofocus
        value=${tab.text}
        problems=${problems}
        completion=${completion}
        keys=${{ "Mod-Enter": onRun, "Shift-Mod-Enter": onRunAll }}
        onChange=${(text: string) => openTabs.set(changeTab(openTabs.get(), tab.id, { text }))}
        onEditor=${keep}
      />
    </div>
  `;
}

/** Returns the options. They name the viewed caller while there is one, unless the user chooses another. */
function useSqlOptions(viewed: ViewedCaller | null): [SqlOptions, (options: SqlOptions) => void] {
  const initial = viewed ? VIEWED : OWNER;
  const [options, setOptions] = useState<SqlOptions>({
    as: initial,
    limit: DEFAULT_LIMIT,
    readOnly: false,
    explain: "no",
  });
  useEffect(() => setOptions((before) => ({ ...before, as: initial })), [initial]);
  return [options, setOptions];
}

/** Opens the text of a link as a new query, without running it. */
function useSharedQuery(): void {
  const [shared] = useSearchParameter("query");
  useEffect(() => {
    if (shared === null) return;
    openTabs.set(addTab(openTabs.get(), shared));
    setSearchParameter("query", null, { replace: true });
  }, [shared]);
}

/** Returns the selection, or else the statement at the cursor. */
function chosenText(editor: CodeMirror | null): RunText | null {
  if (!editor) return null;
  const { from, to } = editor.selection;
  const range = from === to ? editor.statementAt(from) : { from, to };
  return range && { sql: editor.text.slice(range.from, range.to), start: range.from };
}

function openText(): string {
  const { tabs, current } = openTabs.get();
  return tabs.find(({ id }) => id === current)?.text ?? "";
}

type QueryDialogProps = {
  readonly dialog: OpenDialog;
  readonly setDialog: (dialog: OpenDialog) => void;
  readonly onRun: (sql: string) => void;
};

function QueryDialog({ dialog, setDialog, onRun }: QueryDialogProps) {
  const open = useStore(openTabs);
  const close = () => setDialog(null);
  const lists = {
    onClose: close,
    onOpen: (text: string, name = "") => {
      openTabs.set(addTab(open, text, name));
      close();
    },
    onRun: (text: string) => {
      openTabs.set(changeTab(open, open.current, { text }));
      close();
      onRun(text);
    },
  };
  if (dialog === "history") return html`<${HistoryDialog} ...${lists} />`;
  if (dialog === "saved") return html`<${SavedDialog} ...${lists} />`;
  if (dialog === null) return null;
  const tab = open.tabs.find(({ id }) => id === open.current)!;
  const rename = (name: string) => {
    openTabs.set(changeTab(open, open.current, { name }));
    close();
  };
  return html`<${SaveDialog} name=${tab.name} text=${tab.text} onClose=${close} onSaved=${rename} />`;
}
