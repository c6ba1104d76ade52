import { useState } from "preact/hooks";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { TextArea, TextField } from "../components/field.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { changesRows, type EditedRequest, METHODS, parseHeaders } from "./edited-request.ts";

export type RequestFormProps = {
  readonly request: EditedRequest;
  readonly isRunning: boolean;
  readonly onChange: (request: EditedRequest) => void;
  readonly onReset: () => void;
  readonly onRun: () => void;
};

const MAX_ROWS = 14;

export function RequestForm({ request, isRunning, onChange, onReset, onRun }: RequestFormProps) {
  const change = (changed: Partial<EditedRequest>) => onChange({ ...request, ...changed });
  const hasBody = request.method !== "GET" && request.method !== "HEAD" && request.method !== "DELETE";
  const isInvalid = parseHeaders(request.headers) === null;
  return html`
    <div class="try-address">
      <${Select} label=${texts.try.method} value=${request.method} options=${METHODS} onChange=${(method: string) => change({ method })} />
      <${TextField} label=${texts.try.address} value=${request.path} onInput=${(path: string) => change({ path })} />
    </div>
    <${TextArea}
      label=${texts.try.headers}
      rows=${rowsOf(request.headers, 2)}
      value=${request.headers}
      error=${isInvalid ? texts.try.headersInvalid : null}
      onInput=${(headers: string) => change({ headers })}
    />
    ${
      hasBody &&
      html`<${TextArea} label=${texts.try.body} rows=${rowsOf(request.body, 4)} value=${request.body} onInput=${(body: string) => change({ body })} />`
    }
    <${RunButtons} isRunning=${isRunning} disabled=${isInvalid} mustConfirm=${changesRows(request)} onRun=${onRun} onReset=${onReset} />
  `;
}

export type RunButtonsProps = {
  readonly isRunning: boolean;
  readonly disabled: boolean;
  /** It changes rows that exist. */
  readonly mustConfirm: boolean;
  readonly onRun: () => void;
  readonly onReset: () => void;
};

export function RunButtons({ isRunning, disabled, mustConfirm, onRun, onReset }: RunButtonsProps) {
  const [isAsking, setAsking] = useState(false);
  const confirm = () => {
    setAsking(false);
    onRun();
  };
  return html`
    <div class="row">
      <${Button} kind="primary" icon="play" busy=${isRunning} disabled=${disabled} onClick=${() => (mustConfirm ? setAsking(true) : onRun())}>
        ${isRunning ? texts.try.running : texts.try.run}
      <//>
      <${Button} kind="quiet" onClick=${onReset}>${texts.try.reset}<//>
    </div>
    ${
      isAsking &&
      html`<${Dialog}
        title=${texts.try.confirmTitle}
        onClose=${() => setAsking(false)}
        actions=${html`
          <${Button} onClick=${() => setAsking(false)}>${texts.components.cancel}<//>
          <${Button} kind="danger" onClick=${confirm}>${texts.try.run}<//>
        `}
      >
        <p>${texts.try.confirm}</p>
      <//>`
    }
  `;
}

/** The height of a text area that shows the text. */
export function rowsOf(text: string, least: number): number {
  return Math.min(MAX_ROWS, Math.max(least, text.split("\n").length));
}
