import {
  autocompletion,
  type CompletionSource,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { PostgreSQL, type SQLNamespace, sql } from "@codemirror/lang-sql";
import {
  bracketMatching,
  ensureSyntaxTree,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
  syntaxTree,
} from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  type KeyBinding,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const PARSE_MS = 200;

/** An underlined part of the text, with its message. */
export type CodeProblem = {
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly severity?: "error" | "warning" | "info";
};

/** The suggestions in SQL. */
export type SqlCompletion = {
  /** Tables by schema, and columns by table; suggested after a name and a dot. */
  readonly tables: SQLNamespace;
  readonly defaultSchema: string;
  /** Further suggestions. */
  readonly source: CompletionSource;
};

export type CodeMirrorOptions = {
  readonly label: string;
  readonly language: "sql" | "json";
  readonly text: string;
  readonly isReadOnly: boolean;
  readonly autofocus: boolean;
  readonly completion: SqlCompletion | null;
  readonly keys: Readonly<Record<string, (editor: CodeMirror) => void>>;
  readonly onChange: (text: string) => void;
};

type TextRange = { readonly from: number; readonly to: number };

export type CodeMirror = {
  readonly text: string;
  /** The offsets in UTF-16 code units; equal if nothing is selected. */
  readonly selection: TextRange;
  /** The SQL statement at a position: the one around or before it, else the next. */
  statementAt(position: number): TextRange | null;
  setText(text: string): void;
  setProblems(problems: readonly CodeProblem[]): void;
  setCompletion(completion: SqlCompletion | null): void;
  setReadOnly(isReadOnly: boolean): void;
  select(from: number, to: number): void;
  focus(): void;
  destroy(): void;
};

/** The theme uses the page's own properties, so its colours follow the colour scheme. */
const THEME = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--ink)", fontSize: "12px" },
  "&.cm-focused": { outline: "none" },
  // The outline is above the line numbers, which would cover an outline within the editor.
  "&.cm-focused::after": {
    content: '""',
    position: "absolute",
    inset: "0",
    zIndex: "300",
    border: "2px solid var(--focus)",
    pointerEvents: "none",
  },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selected)",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--warning-ground)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selected)", outline: "1px solid var(--accent)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    boxShadow: "var(--shadow)",
  },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--selected)", color: "var(--ink)" },
  ".cm-completionDetail": { color: "var(--quiet)", fontStyle: "normal" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--danger)" },
});

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--series-1)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--series-3)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--series-2)" },
  { tag: [tags.typeName, tags.standard(tags.name), tags.special(tags.name)], color: "var(--series-6)" },
  { tag: tags.propertyName, color: "var(--series-4)" },
  { tag: [tags.lineComment, tags.blockComment, tags.comment], color: "var(--quiet)", fontStyle: "italic" },
]);

export function openCodeMirror(parent: HTMLElement, options: CodeMirrorOptions): CodeMirror {
  const language = new Compartment();
  const readOnly = new Compartment();
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        keymap.of(Object.entries(options.keys).map(([key, run]) => bindKey(key, () => run(editor)))),
        EditorView.cspNonce.of(findNonce()),
        EditorView.contentAttributes.of({ "aria-label": options.label, tabindex: "0" }),
        language.of(languageOf(options)),
        readOnly.of(readOnlyExtension(options.isReadOnly)),
        basicExtensions(),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isFromOutside) options.onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  /** True while the parent component sets the text, which must not cause a change event. */
  let isFromOutside = false;
  const editor: CodeMirror = {
    get text() {
      return view.state.doc.toString();
    },
    get selection() {
      return view.state.selection.main;
    },
    statementAt: (position) => findStatement(view.state, position),
    setText(text) {
      if (text === view.state.doc.toString()) return;
      isFromOutside = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      isFromOutside = false;
    },
    setProblems: (problems) => showProblems(view, problems),
    setCompletion: (completion) =>
      view.dispatch({ effects: language.reconfigure(languageOf({ ...options, completion })) }),
    setReadOnly: (isReadOnly) => view.dispatch({ effects: readOnly.reconfigure(readOnlyExtension(isReadOnly)) }),
    select: (from, to) => view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
  if (options.autofocus) view.focus();
  return editor;
}

function basicExtensions(): Extension {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ icons: false }),
    highlightActiveLine(),
    highlightSelectionMatches(),
    typeOverSelection(),
    lintGutter(),
    search({ top: true }),
    EditorView.lineWrapping,
    syntaxHighlighting(HIGHLIGHT),
    THEME,
    keymap.of([
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...completionKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
  ];
}

/**
 * Lets the editor itself replace a selection: the browser would give text that replaces coloured text an inline style, which the
 * Content-Security-Policy refuses and reports.
 */
function typeOverSelection(): Extension {
  return EditorView.domEventHandlers({
    beforeinput: (event, view) => {
      const { from, to, empty } = view.state.selection.main;
      const text = event.data;
      if (event.inputType !== "insertText" || text === null || empty || view.composing) return false;
      const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
      const isHandled = view.state
        .facet(EditorView.inputHandler)
        .some((handle) => handle(view, from, to, text, insert));
      if (!isHandled) view.dispatch(insert());
      event.preventDefault();
      return true;
    },
  });
}

function bindKey(key: string, run: () => void): KeyBinding {
  return {
    key,
    run: () => {
      run();
      return true;
    },
  };
}

function languageOf({ language, completion }: Pick<CodeMirrorOptions, "language" | "completion">): Extension {
  if (language === "json") return json();
  if (completion === null) return sql({ dialect: PostgreSQL });
  const { tables, defaultSchema, source } = completion;
  return [
    sql({ dialect: PostgreSQL, schema: tables, defaultSchema }),
    PostgreSQL.language.data.of({ autocomplete: source }),
  ];
}

/** Users can still focus, select and copy read-only text by keyboard. */
function readOnlyExtension(isReadOnly: boolean): Extension {
  if (!isReadOnly) return [];
  return [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ tabindex: "0", "aria-readonly": "true" }),
  ];
}

function showProblems(view: EditorView, problems: readonly CodeProblem[]): void {
  const end = view.state.doc.length;
  const diagnostics = problems.map(({ from, to, message, severity = "error" }) => ({
    from: Math.min(from, end),
    to: Math.min(Math.max(from, to), end),
    message,
    severity,
  }));
  view.dispatch(setDiagnostics(view.state, diagnostics));
}

function findStatement(state: EditorState, position: number): TextRange | null {
  const tree = ensureSyntaxTree(state, state.doc.length, PARSE_MS) ?? syntaxTree(state);
  const statements = tree.topNode
    .getChildren("Statement")
    .filter(({ from, to }) => /[^\s;]/.test(state.sliceDoc(from, to)));
  const found = statements.findLast(({ from }) => from <= position) ?? statements[0];
  return found ? { from: found.from, to: found.to } : null;
}

/** Returns the nonce of the page's Content-Security-Policy, for the style element of the editor. */
function findNonce(): string {
  return document.querySelector<HTMLElement>("link[nonce]")?.nonce ?? "";
}
