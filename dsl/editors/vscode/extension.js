// Starts `cinch lsp` and connects VS Code to it. All knowledge of the language is in the server.
const vscode = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

function start() {
  const settings = vscode.workspace.getConfiguration('cinch');
  const server = { command: settings.get('path'), args: ['lsp', ...settings.get('arguments')] };
  client = new LanguageClient('cinch', 'Cinch', server, {
    documentSelector: [{ language: 'cinch' }],
  });
  return client.start().catch((error) => {
    vscode.window.showErrorMessage(`Cinch: cannot start '${server.command} lsp': ${error.message}. The setting cinch.path names the command.`);
  });
}

function stop() {
  const running = client;
  client = undefined;
  return running ? running.stop().catch(() => {}) : Promise.resolve();
}

const restart = () => stop().then(start);

function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('cinch.restart', restart),
    vscode.workspace.onDidChangeConfiguration((event) => (event.affectsConfiguration('cinch') ? restart() : undefined)),
  );
  return start();
}

module.exports = { activate, deactivate: stop };
