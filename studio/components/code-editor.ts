import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { CodeMirror, CodeMirrorOptions, CodeProblem } from "./code-mirror.ts";
import { Notice } from "./notice.ts";

export type { CodeMirror, CodeProblem } from "./code-mirror.ts";

type CodeEditorProps = {
  readonly label: string;
  readonly language: CodeMirrorOptions["language"];
  readonly value: string;
  /** Called with the new text; without it the editor is read-only. */
  readonly onChange?: (value: string) => void;
  readonly problems?: readonly CodeProblem[];
  readonly completion?: CodeMirrorOptions["completion"];
  /** Actions by key, such as `Mod-Enter`. */
  readonly keys?: CodeMirrorOptions["keys"];
  /** `fill` takes the height of the parent; otherwise the editor grows with its text, up to a limit. */
  readonly size?: "grow" | "fill";
  readonly autofocus?: boolean;
  /** The editor itself, for its selection and position; null when it is removed. */
  readonly onEditor?: (editor: CodeMirror | null) => void;
};

const NO_PROBLEMS: readonly CodeProblem[] = [];

/** An editor for SQL or JSON. Its library is loaded when the first one is shown. Escape and then Tab leaves it. */
export function CodeEditor(props: CodeEditorProps) {
  const { value, language, completion = null, problems = NO_PROBLEMS, size = "grow" } = props;
  const parent = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  /** The typed texts that are not rendered yet: they must not replace text that was typed meanwhile. */
  const typed = useRef<string[]>([]);
  const [editor, setEditor] = useState<CodeMirror | null>(null);
  const [error, setError] = useState<Error | null>(null);

  useEffect(() => {
    let opened: CodeMirror | null = null;
    let isShown = true;
    import("./code-mirror.ts").then(
      ({ openCodeMirror }) => {
        if (!isShown) return;
        opened = openCodeMirror(parent.current!, editorOptions(latest, typed.current));
        setEditor(opened);
        latest.current.onEditor?.(opened);
      },
      (failure: Error) => setError(failure),
    );
    return () => {
      isShown = false;
      latest.current.onEditor?.(null);
      opened?.destroy();
    };
  }, [language]);
  useEffect(() => {
    const index = typed.current.indexOf(value);
    if (index < 0) editor?.setText(value);
    typed.current.splice(0, index < 0 ? typed.current.length : index + 1);
  }, [editor, value]);
  useEffect(() => editor?.setProblems(problems), [editor, problems]);
  useEffect(() => editor?.setCompletion(completion), [editor, completion]);
  const isReadOnly = props.onChange === undefined;
  useEffect(() => editor?.setReadOnly(isReadOnly), [editor, isReadOnly]);

  return html`
    <div class=${`code-editor ${size}`} ref=${parent}>
      ${error && html`<${Notice} kind="error" title=${texts.codeEditor.loadFailed} error=${error} />`}
      ${editor || error ? null : html`<pre class="code-editor-text" tabindex="0">${value}</pre>`}
    </div>
  `;
}

/** The options call the callbacks of the last rendering. */
function editorOptions(latest: { readonly current: CodeEditorProps }, typed: string[]): CodeMirrorOptions {
  const { label, language, value, completion = null, keys = {}, onChange, autofocus = false } = latest.current;
  return {
    label,
    language,
    text: value,
    completion,
    keys: Object.fromEntries(
      Object.keys(keys).map((key) => [key, (editor: CodeMirror) => latest.current.keys?.[key]?.(editor)]),
    ),
    isReadOnly: onChange === undefined,
    autofocus,
    onChange: (text) => {
      typed.push(text);
      latest.current.onChange?.(text);
    },
  };
}
