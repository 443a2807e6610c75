// Folders and files that only this user and root can have written (root may do everything anyway).
// Only such files are read as code. Each is checked after it is opened, so that the checked file is
// the one that is read. Links in the last part of a path are not followed.
#pragma once
#include <filesystem>

#include "runtime/cache/open_file.h"
#include "runtime/core/error.h"

namespace cinch::rt {

/// Opens a folder. Errors: Io, naming the path and why it is not trusted ("belongs to user 1000"),
/// or the system's reason, whose number is then the native code.
Result<OpenFile> open_trusted_folder(const std::filesystem::path& path);
/// Opens the folder or file with the name of the last part of `path`, within an open folder.
Result<OpenFile> open_trusted_folder_in(const OpenFile& folder, const std::filesystem::path& path);
Result<OpenFile> open_trusted_file_in(const OpenFile& folder, const std::filesystem::path& path);

/// Does the error mean that nothing exists at the path?
bool is_missing(const Error& error);

/// Makes the missing folders of the path, for this user alone. Errors: Io.
Status make_private_folders(const std::filesystem::path& path);
/// Makes a folder that others may read, as far as they may read `folder` and the umask permits.
Status make_folder_in(const OpenFile& folder, const std::filesystem::path& path);

}  // namespace cinch::rt
